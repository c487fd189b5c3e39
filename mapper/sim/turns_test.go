package sim_test

import (
	"math"
	"os"
	"slices"
	"testing"

	"carma/mapper/sim"
	"carma/mapper/sim/pairs"
)

// TestMeasuredTurns compares the model of time-slicing with 36 pairs measured on an H100
// without MPS. In the earlier model, with turns in which no task is faster than under MPS
// and an assumed cost of 5 %, the mean error was 0.127.
func TestMeasuredTurns(t *testing.T) {
	measured := measuredOn(t, "h100-2026-11-22")
	var off []float64
	sum := 0.0
	for _, p := range measured.Pairs {
		speeds := sim.TimeSlicing.Speeds(p.Loads())
		for i, want := range []float64{p.SpeedA, p.SpeedB} {
			off = append(off, math.Abs(speeds[i]-want))
			sum += math.Abs(speeds[i] - want)
		}
		if p.A.Load.SMACT > 0.7 && p.B.Load.SMACT > 0.7 && (p.SpeedA+p.SpeedB < 0.88 || p.SpeedA+p.SpeedB > 0.92) {
			t.Errorf("%s and %s at %.3f together", p.A.ID, p.B.ID, p.SpeedA+p.SpeedB)
		}
	}
	slices.Sort(off)
	if mean, median := sum/float64(len(off)), off[len(off)/2]; len(measured.Pairs) != 36 || mean > 0.07 || median > 0.04 {
		t.Errorf("%d pairs: mean error %.3f, median %.3f; want at most 0.07 and 0.04", len(measured.Pairs), mean, median)
	}
}

// measuredOn reads the pairs in a folder of docs/hardware.
func measuredOn(t *testing.T, folder string) pairs.Measured {
	t.Helper()
	opened := func(name string) *os.File {
		file, err := os.Open("../../docs/hardware/" + folder + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	profiles, err := pairs.ReadProfiles("profiles.csv", opened("profiles.csv"))
	if err != nil {
		t.Fatal(err)
	}
	measured, err := pairs.Read("pairs.csv", opened("pairs.csv"), profiles)
	if err != nil {
		t.Fatal(err)
	}
	return measured
}
