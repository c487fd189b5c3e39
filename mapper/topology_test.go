package mapper

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestCloseGPUs checks that every policy gives a task on several GPUs close GPUs.
func TestCloseGPUs(t *testing.T) {
	// NVLink connects two pairs: 0 with 2, and 1 with 3. GPUs 4 to 7 have no NVLink. Even GPUs are
	// at one NUMA node, odd GPUs at the other, except for the pairs.
	var all []model.GPUInfo
	for i := range 8 {
		g := model.GPUInfo{ID: gpuID(i), Index: i, Capacity: 40 * units.GiB, Socket: string(rune('0' + i%2))}
		if i < 4 {
			g.Link = string(rune('0' + i%2))
		}
		all = append(all, g)
	}
	for _, policy := range []string{"carma", "magm", "exclusive", "round-robin"} {
		opt := DefaultsOf(policy)
		opt.WarmUp, opt.Headroom = 0, 0
		for _, row := range []struct {
			name string
			busy []int // GPUs whose memory other processes use
			want [][]int
		}{
			{"by NVLink", nil, [][]int{{0, 2}, {1, 3}}},
			{"by NVLink, though not first", []int{0}, [][]int{{1, 3}}},
			{"at one NUMA node", []int{0, 1}, [][]int{{2, 4}, {2, 6}, {4, 6}, {3, 5}, {3, 7}, {5, 7}}},
			{"the last of a node", []int{0, 1, 3, 5, 7, 4}, [][]int{{2, 6}}},
			{"far from each other", []int{0, 1, 3, 5, 4, 6}, [][]int{{2, 7}}},
			{"too few", []int{0, 1, 2, 3, 4, 6, 7}, nil},
		} {
			t.Run(policy+"/"+row.name, func(t *testing.T) {
				w := newWorldOf(t, opt, all...)
				for _, i := range row.busy {
					w.sample(model.GPUSample{ID: gpuID(i), OtherProcesses: 39 * units.GiB})
				}
				got := w.on(w.submit(30*units.GiB, func(r *model.Request) { r.GPUs, r.Exclusive = 2, true }))
				for _, want := range row.want {
					if len(got) == 2 && (got[0] == want[0] && got[1] == want[1] || got[0] == want[1] && got[1] == want[0]) {
						return
					}
				}
				if len(row.want) > 0 || got != nil {
					t.Errorf("on GPUs %v, want one of %v", got, row.want)
				}
			})
		}
	}
}
