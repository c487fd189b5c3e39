package record

import "carma/runner/api"

// Usage is the sum over a user's unfinished tasks.
type Usage struct {
	Tasks int
	High  int   // tasks of high priority
	Bytes int64 // approximate memory of the requests, see [SizeOf]
}

// Add adds a task to the sums with n = 1, and removes it with n = -1.
func (u *Usage) Add(s *api.Submit, n int) {
	u.Tasks += n
	u.Bytes += int64(n) * SizeOf(s)
	if s.Priority == "high" {
		u.High += n
	}
}

// SizeOf returns the approximate memory of a request in bytes.
func SizeOf(s *api.Submit) int64 {
	size := 512 + len(s.Image) + len(s.Conda) + len(s.Venv) + len(s.WorkDir) + len(s.Name)
	for _, list := range [][]string{s.Command, s.Entrypoint, s.Env} {
		for _, t := range list {
			size += len(t) + 16
		}
	}
	for k, v := range s.Labels {
		size += len(k) + len(v) + 32
	}
	for _, m := range s.Mounts {
		size += len(m.Source) + len(m.Target) + 32
	}
	return int64(size + 64*len(s.After))
}
