package sim

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/policy"
)

// dice draws small numbers from a fuzzer's bytes, and 0 when they are used up.
type dice []byte

func (d *dice) of(n int) int {
	if len(*d) == 0 {
		return 0
	}
	b := (*d)[0]
	*d = (*d)[1:]
	return int(b) % n
}

func (d *dice) name(names []string) string {
	if i := d.of(len(names) + 1); i > 0 {
		return names[i-1]
	}
	return ""
}

// The number of bytes of a fuzzed replay for the rules, and for each task.
const (
	diceOfRules = 16
	diceOfTask  = 10
)

func (d *dice) rules() Config {
	opt := options(policy.Names()[d.of(len(policy.Names()))])
	gpus := 1 + d.of(4)
	if d.of(2) == 1 {
		opt.Booking, opt.Order, opt.Recovery = d.name(model.Bookings), d.name(model.Orders), d.name(model.Recoveries)
		opt.Learn, opt.IdleFirst = d.of(2) == 1, d.of(2) == 1
		opt.Interval = time.Duration(d.of(30)) * time.Second
		opt.WarmUp = time.Duration(d.of(60)) * time.Second
		opt.Margin = units.Bytes(d.of(20)) * units.GiB
		opt.SMACTCap = float64(d.of(11)) / 10
		opt.SMOCCCap, opt.DRAMACap = float64(d.of(11))/10, float64(d.of(11))/10
		opt.MaxTasks, opt.LookAhead = d.of(5), 1+d.of(5)
	}
	return Config{Options: opt, GPUs: station(gpus), StartUp: time.Second}
}

func (d *dice) task(gpus int) Task {
	l := []Load{vgg128, vgg32, resnet, small, smaller, {}}[d.of(6)]
	memory := units.Bytes(d.of(152)) * units.GiB / 4
	task := training(time.Duration(d.of(256))*time.Minute, time.Duration(1+d.of(256))*17*time.Second, memory, l)
	if task.GPUs = 1 + d.of(min(2, gpus)); task.GPUs > 1 {
		task.Memory, task.Loads = append(task.Memory, memory/2), append(task.Loads, small)
	}
	task.Priority = model.Priority(d.of(3) - 1)
	task.Exclusive = d.of(8) == 7
	task.Kind, task.Family = d.name([]string{"a1", "a2", "b"}), "f"
	switch d.of(4) {
	case 0:
		task.Estimate = model.Estimate{WholeGPU: true}
	case 1:
		task.Estimate.Memory /= 4
	}
	if d.of(2) == 1 {
		task.Expected.Loads = task.Loads
	}
	return task
}

// FuzzReplay checks the invariants of replays for any trace, policy and options.
func FuzzReplay(f *testing.F) {
	rules := func(b ...byte) []byte { return b }
	heavy := []byte{0, 40, 0, 200, 0, 1, 0, 0, 0, 0} // a VGG16 of 10 GiB, nothing known
	light := []byte{3, 12, 1, 30, 0, 1, 0, 1, 2, 1}  // a ResNet-18 of 3 GiB of kind a1, known
	wrong := []byte{2, 140, 2, 60, 0, 2, 0, 2, 1, 0} // 35 GiB, with an estimate of a quarter
	wide := []byte{4, 60, 3, 90, 1, 0, 7, 3, 2, 1}   // two exclusive GPUs
	both := slices.Concat(heavy, light, wrong, wide, light, wrong, heavy, light)
	for policy := range byte(len(policy.Names())) {
		f.Add(slices.Concat(rules(policy, 1, 0), both))
		// By samples, shortest first, the original's recovery, one launch every 10 s.
		f.Add(slices.Concat(rules(policy, 1, 1, 2, 2, 3, 1, 0, 10, 30, 2, 8, 4, 4, 0, 0), both))
		// By grants, staged recovery, at most two tasks.
		f.Add(slices.Concat(rules(policy, 0, 1, 1, 1, 2, 0, 1, 0, 0, 0, 8, 0, 0, 2, 1), both))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := dice(data[:min(len(data), diceOfRules+20*diceOfTask)])
		cfg := d.rules()
		var tasks []Task
		for len(d) > 0 {
			tasks = append(tasks, d.task(len(cfg.GPUs)))
		}
		checkReplay(t, cfg, tasks)
	})
}
