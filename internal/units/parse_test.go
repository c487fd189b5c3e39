package units

import (
	"testing"
	"time"
)

// TestParseTime: times as docker, sleep and Slurm write them, and nothing else.
func TestParseTime(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "90s": 90 * time.Second, "1.5": 1500 * time.Millisecond, "0": 0, "0s": 0, "2h30m": 150 * time.Minute, "500ms": time.Second / 2,
		"2d": 2 * day, "1d12h": 36 * time.Hour, "1w": 7 * day, "1w2d": 9 * day, "0.5d": 12 * time.Hour, " 5m ": 5 * time.Minute,
		"2:00:00": 2 * time.Hour, "5:30": 5*time.Minute + 30*time.Second, "100:00:01": 100*time.Hour + time.Second, "90:00": 90 * time.Minute,
		"1-12:00:00": 36 * time.Hour, "1-12": 36 * time.Hour, "1-12:30": 36*time.Hour + 30*time.Minute, "7-0": 7 * day,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "s", "soon", "-1", "-5s", "1-", "-12", "1-1-1", "1:2:3:4", "1:60", "1:-2", ":30", "2:", "d", "1d-2", "1e3", "NaN", "Inf", "2 h", "d2", "-1d", "1d2d", "1d1w", "99999999999w", "300000000d", "1e30"} {
		if got, err := ParseTime(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
	if got, err := ParseSpan("0"); err == nil {
		t.Errorf("a span of %s", got)
	}
}

// TestParseAmount: a number without a unit is asked about.
func TestParseAmount(t *testing.T) {
	for text, want := range map[string]Bytes{"0": 0, "12G": 12 * GiB, "1073741824B": GiB, " 512m ": 512 * MiB, "0.5g": 512 * MiB, "20Gi": 20 * GiB, "512Mi": 512 * MiB, "1Ti": TiB} {
		if got, err := ParseAmount(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"12": "12 what? write 12G", " 12.5 ": "12.5 what? write 12.5G", "512": "512 what? write 512M", "8589934592": "8589934592 what? write 8G", "8589934593": "8589934593 what? write 8589934593B",
		"lots": `"lots" is not an amount of memory; write for example 512M or 12G`,
	} {
		if got, err := ParseAmount(text); err == nil || err.Error() != want {
			t.Errorf("%q is %d, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ParseMemory("12"); err == nil || err.Error() != "12 what? write 12G" {
		t.Errorf("memory: %v", err)
	}
}
