package study

import (
	"fmt"

	"carma/configs/servers"
)

// MaxGPUs is the largest number of GPUs in a replay.
const MaxGPUs = 16_384

// Machines returns n copies of a server as machines. Their GPUs are numbered
// consecutively; a task's GPUs are all in one machine.
func Machines(s servers.Server, n int) (servers.Server, error) {
	if n > MaxGPUs/len(s.GPUs) {
		return servers.Server{}, wrongf("", "--machines: %d machines with %d GPUs each have more than %d GPUs; at most %d", n, len(s.GPUs), MaxGPUs, MaxGPUs/len(s.GPUs))
	}
	one := s.GPUs
	s.GPUs = make([]servers.GPU, 0, n*len(one))
	for m := range n {
		for _, g := range one {
			g.Index = len(s.GPUs)
			g.Machine = fmt.Sprintf("%s-%d", s.Name, m)
			g.UUID = fmt.Sprintf("%s-%d", s.Name, g.Index)
			s.GPUs = append(s.GPUs, g)
		}
	}
	return s, nil
}
