package sim

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
)

// TestCoarseServer checks that, on cards with only the share of time in which a kernel
// runs, light unknown tasks are soon joined by others, and heavy ones are not. Nothing is
// learned of either.
func TestCoarseServer(t *testing.T) {
	for _, row := range []struct {
		name string
		load Load
		soon bool
	}{
		{"light", Load{SMACT: 0.17, SMOCC: 0.08, DRAMA: 0.07, Step: 0.015}, true},
		{"heavy", Load{SMACT: 0.85, SMOCC: 0.42, DRAMA: 0.40, Step: 0.25}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var tasks []Task
			for i := range 4 {
				tasks = append(tasks, Task{
					At: time.Duration(i) * time.Second, Name: row.name, Kind: row.name, GPUs: 1, SoloTime: time.Hour,
					Estimate: model.Estimate{Memory: 2 * units.GiB}, Memory: []units.Bytes{2 * units.GiB}, Loads: []Load{row.load},
				})
			}
			joined, most, found := units.Instant(0), 0.0, 0.0
			_, err := Run(Config{
				Options: mapper.DefaultsOf("carma"), Coarse: true,
				GPUs: []GPU{{ID: "rtx", Model: "RTX", Memory: 24 * units.GiB, IdlePower: 20, PeakPower: 350, Speed: 1}},
				Observe: func(s *mapper.State, ev model.Event, _ []model.Decision) {
					if joined == 0 && len(s.GPUs()[0].Residents) > 1 {
						joined = s.Now() - origin
					}
					if there := s.GPUs()[0].Residents; found == 0 && len(there) > 0 && there[0].Bound {
						found = there[0].Load.SMACT
					}
					if seen, ok := ev.(model.Sampled); ok {
						most = max(most, seen.GPUs[0].SMACT)
						if !seen.GPUs[0].Coarse {
							t.Fatal("a sample is not coarse")
						}
					}
					for _, task := range s.Tasks() {
						if task.Expected.Source != "" {
							t.Fatalf("learned: %+v", task.Expected)
						}
					}
				},
			}, tasks)
			if err != nil {
				t.Fatal(err)
			}
			if most < row.load.Busy()-0.01 || most <= row.load.SMACT {
				t.Errorf("samples show %v at most", most)
			}
			if found < row.load.SMACT-0.2 || found > row.load.SMACT+0.2 {
				t.Errorf("it is taken for SMACT %v", found)
			}
			if after := time.Duration(joined); (after > 0 && after <= 6*time.Minute) != row.soon || !row.soon && after > 0 && after < time.Hour {
				t.Errorf("the first was joined after %s", after)
			}
		})
	}
}
