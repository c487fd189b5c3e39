// Command write writes a synthetic log to stdout:
//
//	go run ./configs/traces/synth/write philly|helios JOBS [SEED]
package main

import (
	"fmt"
	"os"
	"strconv"

	"carma/configs/traces/synth"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	forms := map[string]func(synth.Options) error{
		"philly": func(o synth.Options) error { return synth.Philly(os.Stdout, o) },
		"helios": func(o synth.Options) error { return synth.Helios(os.Stdout, o) },
	}
	if len(args) < 2 || len(args) > 3 || forms[args[0]] == nil {
		return fmt.Errorf("usage: write philly|helios JOBS [SEED]")
	}
	o := synth.Options{Seed: 1}
	var err error
	if o.Jobs, err = strconv.Atoi(args[1]); err != nil || o.Jobs < 0 {
		return fmt.Errorf("%q is not a number of jobs", args[1])
	}
	if len(args) == 3 {
		if o.Seed, err = strconv.ParseUint(args[2], 10, 64); err != nil {
			return fmt.Errorf("%q is not a seed", args[2])
		}
	}
	return forms[args[0]](o)
}
