package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Parse parses raw into the field at p. raw is a string from a flag or the environment, or
// a YAML value.
func Parse(p, raw any) error {
	switch p := p.(type) {
	case *string:
		switch v := raw.(type) {
		case string:
			*p = v
		case nil:
			*p = ""
		default:
			return fmt.Errorf("%s is not a text", quote(raw))
		}
	case *bool:
		v, err := strconv.ParseBool(text(raw))
		if err != nil {
			return fmt.Errorf("%s is neither true nor false", quote(raw))
		}
		*p = v
	case *int:
		v, err := strconv.Atoi(text(raw))
		if err != nil {
			return fmt.Errorf("%s is not a whole number", quote(raw))
		}
		*p = v
	case *float64:
		v, err := strconv.ParseFloat(text(raw), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is not a number", quote(raw))
		}
		*p = v
	case *time.Duration:
		v, err := units.ParseTime(text(raw))
		if err != nil && text(raw) == "" {
			err = fmt.Errorf("%s is not a time; write for example 30s or 5m", quote(raw))
		}
		if err != nil {
			return err
		}
		*p = v
	case *units.Bytes:
		v, err := units.ParseAmount(text(raw))
		if err != nil && text(raw) == "" {
			err = fmt.Errorf("%s is not an amount of memory; write for example 512M or 12G", quote(raw))
		}
		if err != nil {
			return err
		}
		*p = v
	case *[]model.Weight:
		v, err := weights(raw)
		if err != nil {
			return err
		}
		*p = v
	case *[]model.Quota:
		v, err := quotas(raw)
		if err != nil {
			return err
		}
		*p = v
	case *[]string:
		v, err := list(raw)
		if err != nil {
			return err
		}
		*p = v
	default:
		panic(fmt.Sprintf("rules: no parser for %T", p))
	}
	return nil
}

// text returns the one-word form of a YAML scalar, or "" for anything else, which no
// parser above accepts.
func text(raw any) string {
	switch v := raw.(type) {
	case string:
		return strings.TrimSpace(v)
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v)
	}
	return ""
}

func quote(raw any) string {
	switch v := raw.(type) {
	case nil:
		return "an empty value"
	case string:
		return strconv.Quote(v)
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	}
	return "a map"
}

func list(raw any) ([]string, error) {
	out := []string{}
	switch v := raw.(type) {
	case nil:
	case string:
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok && e != nil {
				return nil, fmt.Errorf("%s in the list is not a text", quote(e))
			}
			if s = strings.TrimSpace(s); !ok {
				s = "~" // YAML's word for null means the home here
			}
			if s != "" {
				out = append(out, s)
			}
		}
	default:
		return nil, fmt.Errorf("%s is not a list; write for example [/data, /scratch]", quote(raw))
	}
	return out, nil
}

// Format is the inverse of [Parse], which reads the text as the same value.
func Format(p any) string {
	switch p := p.(type) {
	case *string:
		return *p
	case *units.Bytes:
		return showBytes(*p)
	case *[]string:
		return strings.Join(*p, ", ")
	case *[]model.Weight:
		return showWeights(*p)
	case *[]model.Quota:
		return showQuotas(*p)
	case *time.Duration:
		return FormatDuration(*p)
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64)
	case *int:
		return strconv.Itoa(*p)
	case *bool:
		return strconv.FormatBool(*p)
	}
	panic(fmt.Sprintf("rules: no text for %T", p))
}

func showBytes(b units.Bytes) string {
	for _, u := range []struct {
		unit string
		of   units.Bytes
	}{{"G", units.GiB}, {"M", units.MiB}, {"K", units.KiB}} {
		if b != 0 && b%u.of == 0 {
			return strconv.FormatInt(int64(b/u.of), 10) + u.unit
		}
	}
	if b == 0 {
		return "0"
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// FormatDuration omits trailing zero units: 10m0s is 10m.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// KindOf returns the name of a key's type, for --help and errors.
func KindOf(p any) string {
	switch p.(type) {
	case *bool:
		return "bool"
	case *int:
		return "int"
	case *float64:
		return "number"
	case *time.Duration:
		return "duration"
	case *units.Bytes:
		return "memory"
	case *[]string, *[]model.Weight, *[]model.Quota:
		return "list"
	}
	return "string"
}
