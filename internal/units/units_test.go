package units

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for _, row := range []struct {
		in   string
		want Bytes
		out  string
	}{
		{"0", 0, "0 MiB"}, {"512m", 512 * MiB, "512 MiB"}, {"12G", 12 * GiB, "12.0 GiB"}, {" 12.5GiB ", 12*GiB + 512*MiB, "12.5 GiB"},
		{"1 tb", TiB, "1024.0 GiB"}, {"1048576", MiB, "1 MiB"}, {"2KiB", 2 * KiB, "0 MiB"},
	} {
		if got, err := ParseBytes(row.in); err != nil || got != row.want || got.String() != row.out {
			t.Errorf("%q is %d, %s, %v; want %d, %s", row.in, got, got, err, row.want, row.out)
		}
	}
	for _, in := range []string{"", "G", "12Q", "-1G", "1e400", "NaN", "9999999999T", "1.2.3G", "12 G B"} {
		if got, err := ParseBytes(in); err == nil || !strings.Contains(err.Error(), "write for example 512M or 12G") {
			t.Errorf("%q is %d, %v", in, got, err)
		}
	}
	if got := (10 * GiB).Scale(1.25); got != 12*GiB+512*MiB {
		t.Errorf("10 GiB x 1.25 is %s", got)
	}
	if got := Bytes(math.MaxInt64 / 2).Scale(3); got != math.MaxInt64/2 {
		t.Errorf("too much x 3 is %d", got)
	}
}

func TestJoules(t *testing.T) {
	for j, want := range map[Joules]string{0: "0.0 kJ", 180: "0.2 kJ", 99_900: "99.9 kJ", 412_300: "0.41 MJ", 4.567e6: "4.57 MJ", 1.5e8: "150 MJ"} {
		if got := j.String(); got != want {
			t.Errorf("%v J is %s, want %s", float64(j), got, want)
		}
	}
}

func TestInstant(t *testing.T) {
	if got := Instant(5).Add(time.Second); got != 1_000_000_005 || got.Sub(5) != time.Second {
		t.Errorf("5 + 1 s is %d", got)
	}
	if got := Instant(5).Add(math.MaxInt64); got != Never {
		t.Errorf("5 + for ever is %d", got)
	}
	at := time.Date(2026, 11, 21, 3, 0, 0, 7, time.FixedZone("", 3600))
	if got := InstantOf(at).Time(); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("%s came back as %s", at, got)
	}
}
