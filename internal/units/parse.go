package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// These functions parse user input from the command line and from files. Their errors
// quote it and give an example, but do not name the option, which the caller adds.

// ParseMemory parses an amount of memory above zero; see [ParseAmount].
func ParseMemory(s string) (Bytes, error) {
	b, err := ParseAmount(s)
	if err == nil && b == 0 {
		err = errors.New("nothing is not an amount of memory; write for example 512M or 12G")
	}
	return b, err
}

// ParseAmount parses an amount of memory with its unit, or 0. It refuses a number without
// a unit, because its meaning is ambiguous: bytes in docker, MiB in Slurm.
func ParseAmount(s string) (Bytes, error) {
	b, err := ParseBytes(s)
	if n := strings.TrimSpace(s); err == nil && b != 0 && strings.Trim(n, "0123456789.") == "" {
		return 0, fmt.Errorf("%s what? write %s", n, likely(n, b))
	}
	return b, err
}

// likely returns a number with the unit that its size suggests: GiB up to 256, MiB up to
// a million, otherwise bytes.
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

// ParseCount parses an integer of at least least.
func ParseCount(s string, least int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least {
		return 0, fmt.Errorf("%q is not a whole number from %d on", s, least)
	}
	return n, nil
}

// ParseProcessors parses a number of processors, with fractions. Container engines treat
// less than a hundredth as nothing.
func ParseProcessors(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0.01) || n > 1e6 {
		return 0, fmt.Errorf("%q is not a number of processors from 0.01 on; write for example 4 or 1.5", s)
	}
	return n, nil
}

// ParseParameters parses a model's number of parameters: 25000000, 25M, 1.3B (or G), 70k.
// The multiples are decimal, as in names of models.
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

// ParseShape parses the shape of a sample, such as 3x224x224, and returns its number of
// elements.
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
