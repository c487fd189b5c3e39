// Package units defines carma's units: memory in bytes and points in time in nanoseconds.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is an amount of GPU memory. Memory is always an integer number of
// bytes; GiB and MiB are for display and input only.
type Bytes int64

// Binary multiples.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// String prints GiB with one decimal from 1 GiB up, whole MiB below.
func (b Bytes) String() string {
	if b >= GiB || b <= -GiB {
		return strconv.FormatFloat(b.GiB(), 'f', 1, 64) + " GiB"
	}
	return strconv.FormatInt(int64(b/MiB), 10) + " MiB"
}

// Clamp limits an untrusted amount to between 0 and 1 PiB, so that no sum of amounts
// overflows.
func (b Bytes) Clamp() Bytes { return max(0, min(b, 1024*TiB)) }

// GiB returns the amount in GiB.
func (b Bytes) GiB() float64 { return float64(b) / float64(GiB) }

// Scale returns b x f, rounded up, saturating instead of overflowing.
func (b Bytes) Scale(f float64) Bytes {
	v := math.Ceil(float64(b) * f)
	if v >= math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return Bytes(v)
}

var byteUnits = map[string]Bytes{
	"": 1, "b": 1,
	"k": KiB, "kb": KiB, "kib": KiB, "ki": KiB,
	"m": MiB, "mb": MiB, "mib": MiB, "mi": MiB,
	"g": GiB, "gb": GiB, "gib": GiB, "gi": GiB,
	"t": TiB, "tb": TiB, "tib": TiB, "ti": TiB,
}

// ParseBytes parses an amount of memory as in Docker and Kubernetes: "512m", "12G",
// "12.5GiB", "20Gi", all units binary. A number without a unit is bytes, as in files
// written by programs. For user input, use [ParseAmount].
func ParseBytes(s string) (Bytes, error) {
	t := strings.TrimSpace(s)
	i := len(t)
	for i > 0 && (t[i-1] < '0' || t[i-1] > '9') && t[i-1] != '.' {
		i--
	}
	num, unit := t[:i], strings.ToLower(strings.TrimSpace(t[i:]))
	mul, ok := byteUnits[unit]
	v, err := strconv.ParseFloat(num, 64)
	if !ok || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not an amount of memory; write for example 512M or 12G", s)
	}
	if v < 0 {
		return 0, fmt.Errorf("%q is negative; write for example 512M or 12G", s)
	}
	f := v * float64(mul)
	if f >= math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is larger than any memory; write for example 512M or 12G", s)
	}
	return Bytes(math.Round(f)), nil
}

// Instant is a point in time in nanoseconds: since the Unix epoch in the daemon, since
// the start of the trace in a replay. It is not a [time.Time] because decisions must not
// depend on a location or a monotonic reading.
type Instant int64

// Never is an instant that does not come.
const Never Instant = math.MaxInt64

// Add returns the instant d later. It saturates at the last instant, so that "in 300
// years" is not in the past.
func (t Instant) Add(d time.Duration) Instant {
	if d > 0 && t > Never-Instant(d) {
		return Never
	}
	return t + Instant(d)
}

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Time returns the instant as a [time.Time] in UTC.
func (t Instant) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// TimeOrZero returns the instant as a [time.Time] in UTC, and the zero time for instant 0.
func (t Instant) TimeOrZero() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return t.Time()
}

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant { return Instant(t.UnixNano()) }

// Joules is an energy.
type Joules float64

// String formats the energy in kJ or MJ: 12.3 kJ, 4.56 MJ, 789 MJ.
func (j Joules) String() string {
	switch {
	case j >= 1e8:
		return fmt.Sprintf("%.0f MJ", float64(j)/1e6)
	case j < 1e5:
		return fmt.Sprintf("%.1f kJ", float64(j)/1e3)
	}
	return fmt.Sprintf("%.2f MJ", float64(j)/1e6)
}
