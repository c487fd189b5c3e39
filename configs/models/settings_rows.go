package models

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/internal/suggest"
	"carma/internal/units"
)

// size returns a row for a number that changes layers.
func size(name, short, help, told string, at func(*Overrides) *int) Setting {
	s := number(name, short, help, told, at)
	s.Layers = true
	return s
}

// number returns a row for a whole number from 1 on.
func number(name, short, help, told string, at func(*Overrides) *int) Setting {
	value := func(o *Overrides) int { return *at(o) }
	return Setting{
		Name: name, Short: short, Help: help, Value: "N",
		set: func(o *Overrides, text string) error {
			n, err := units.ParseCount(text, 1)
			if err == nil {
				*at(o) = int(n)
			}
			return err
		},
		text: func(o *Overrides) string { return count(value(o)) },
		told: after(told, value),
	}
}

// word returns a row for one of several words, in any case. same maps other spellings to
// these words.
func word[T ~string](name, short, help string, list func() []string, same map[string]string, at func(*Overrides) *T) Setting {
	text := func(o *Overrides) string { return string(*at(o)) }
	return Setting{
		Name: name, Short: short, Help: help + ": " + strings.Join(list(), ", "), Value: "word", Words: list(),
		set: func(o *Overrides, text string) error {
			text = strings.ToLower(text)
			if other, ok := same[text]; ok {
				text = other
			}
			if !slices.Contains(list(), text) {
				return fmt.Errorf("%s is not one of %s; nearest: %s", Short(text), strings.Join(list(), ", "), suggest.Names(text, list(), 1)[0])
			}
			*at(o) = T(text)
			return nil
		},
		text: text, told: text,
	}
}

// after returns a function that formats a number, or returns "" for 0.
func after(format string, value func(*Overrides) int) func(*Overrides) string {
	return func(o *Overrides) string {
		if n := value(o); n > 0 {
			return fmt.Sprintf(format, strconv.Itoa(n))
		}
		return ""
	}
}

// count formats a number, or returns "" for 0.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// textOf returns a function that formats a bool, or returns "" for nil.
func textOf(at func(*Overrides) *bool) func(*Overrides) string {
	return func(o *Overrides) string {
		if on := at(o); on != nil {
			return strconv.FormatBool(*on)
		}
		return ""
	}
}

// onOff returns a row for a setting that is off by default.
func onOff(name, help string, layers bool, at func(*Overrides) *bool) Setting {
	return Setting{
		Name: name, Layers: layers, Help: help,
		set: func(o *Overrides, text string) (err error) {
			if *at(o), err = strconv.ParseBool(text); err != nil {
				err = errors.New(Short(text) + " is not true or false")
			}
			return err
		},
		text: func(o *Overrides) string {
			if !*at(o) {
				return ""
			}
			return "true"
		},
		told: func(o *Overrides) string {
			if !*at(o) {
				return ""
			}
			return name
		},
	}
}

// setParallel parses a word, or tp:N.
func setParallel(o *Overrides, text string) error {
	text = strings.ToLower(text)
	if known := append(Parallels(), "tp:2"); Parallel(text).TensorParallel() == 0 && !slices.Contains(Parallels(), text) {
		return fmt.Errorf("%s is not one of %s, tp:N; nearest: %s", Short(text), strings.Join(Parallels(), ", "), suggest.Names(text, known, 1)[0])
	}
	o.Parallel = Parallel(text)
	return nil
}

// setOffload parses names, separated by commas.
func setOffload(o *Overrides, text string) error {
	text = strings.ToLower(text)
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(Offloadable(), name) {
			return fmt.Errorf("%s is not one of %s; nearest: %s", Short(name), strings.Join(Offloadable(), ", "), suggest.Names(name, Offloadable(), 1)[0])
		}
	}
	o.Offload = text
	return nil
}

func setCheckpointing(o *Overrides, text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New(Short(text) + " is not true or false")
	}
	o.Checkpointing = &on
	return nil
}

func setBits(o *Overrides, text string) error {
	if text != "4" && text != "8" {
		return errors.New(Short(text) + " is not 4 or 8")
	}
	o.Bits, _ = strconv.Atoi(text)
	return nil
}
