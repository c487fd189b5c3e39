package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// These read what people write, on the command line and in files. Their errors
// quote it and give an example; they do not name the option, which the caller
// knows.

// ParseMemory reads an amount of memory above zero; see [ParseAmount].
func ParseMemory(s string) (Bytes, error) {
	b, err := ParseAmount(s)
	if err == nil && b == 0 {
		err = errors.New("nothing is not an amount of memory; write for example 512M or 12G")
	}
	return b, err
}

// ParseAmount reads an amount of memory with its unit, or 0. Of a bare number
// nobody knows what it counts: docker takes it for bytes, Slurm for MiB.
func ParseAmount(s string) (Bytes, error) {
	b, err := ParseBytes(s)
	if n := strings.TrimSpace(s); err == nil && b != 0 && strings.Trim(n, "0123456789.") == "" {
		return 0, fmt.Errorf("%s what? write %s", n, likely(n, b))
	}
	return b, err
}

// likely is a bare number with the unit that its size suggests: GiB up to 256, MiB
// up to a million, else bytes.
func likely(n string, b Bytes) string {
	switch {
	case b <= 256:
		return n + "G"
	case b < 1_000_000:
		return n + "M"
	case b%GiB == 0:
		return strconv.FormatInt(int64(b/GiB), 10) + "G"
	}
	return n + "B"
}

// ParseCount reads a whole number from least on.
func ParseCount(s string, least int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least {
		return 0, fmt.Errorf("%q is not a whole number from %d on", s, least)
	}
	return n, nil
}

// ParseProcessors reads a number of processors, whole ones and parts. Less than
// a hundredth is nothing to a container engine.
func ParseProcessors(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0.01) || n > 1e6 {
		return 0, fmt.Errorf("%q is not a number of processors from 0.01 on; write for example 4 or 1.5", s)
	}
	return n, nil
}

// ParseParameters reads a model's number of parameters, 25000000, 25M, 1.3B (or
// G), 70k: decimal multiples, as models are named.
func ParseParameters(s string) (int64, error) {
	number, factor := s, 1.0
	if n := len(s); n > 0 {
		if i := strings.IndexByte("kmgbt", s[n-1]|0x20); i >= 0 {
			number, factor = s[:n-1], []float64{1e3, 1e6, 1e9, 1e9, 1e12}[i]
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	x *= factor
	if err != nil || !(x >= 1) || x > 8e12 || math.Abs(x-math.Round(x)) > 1e-3 {
		return 0, fmt.Errorf("%q is not a number of parameters from 1 to 8T; write for example 25M or 1.3B", s)
	}
	return int64(math.Round(x)), nil
}

// ParseShape reads the shape of a sample, 3x224x224, as its number of elements.
func ParseShape(s string) (int64, error) {
	n := int64(1)
	for _, part := range strings.Split(strings.ToLower(s), "x") {
		d, err := strconv.ParseInt(part, 10, 64)
		if err != nil || d < 1 || d > 1<<40 || n > 1<<40/d {
			return 0, fmt.Errorf("%q is not the shape of a sample; write for example 3x224x224", s)
		}
		n *= d
	}
	return n, nil
}
