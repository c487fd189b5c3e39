package cli

import (
	"testing"
	"time"

	"carma/runner/api"
)

func TestTaskCode(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, tt := range []struct {
		phase string
		code  *int
		want  int
	}{
		{"succeeded", code(0), 0}, {"succeeded", nil, 0}, {"failed", code(3), 3}, {"failed", code(124), 124}, {"failed", code(137), 137},
		{"failed", code(0), 1}, {"failed", nil, 125}, {"cancelled", nil, 1}, {"cancelled", code(143), 143}, {"cancelled", code(0), 1}, {"failed", code(300), 1},
	} {
		if got := TaskCode(&api.Task{Phase: tt.phase, ExitCode: tt.code}); got != tt.want {
			t.Errorf("%s %v: got %d, want %d", tt.phase, tt.code, got, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 111: "111th", 102: "102nd"} {
		if got := Ordinal(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 1400 * time.Millisecond: "1s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 599 * time.Second: "9m59s",
		600 * time.Second: "10m", 3599 * time.Second: "59m", time.Hour: "1h00m", 26 * time.Hour: "1d02h", 2000 * time.Hour: "83d08h",
	} {
		if got := Age(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}
