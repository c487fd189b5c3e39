// Fit finds the coefficients of carma's interference model ([interference.Model]) from
// pairs of tasks that were measured together and alone, and writes
// coefficients.go:
//
//	go run ./mapper/sim/fit --pairs pairwise-slowdown.csv --profiles solo-profiles.csv
//
// With --check it writes nothing: it prints the errors of the coefficients
// that carma ships with on those pairs.
//
// The error that is made small is that of the speed of each task of a pair
// while both run (columns overlap_speed_a and _b; above 1 counts as 1), by a
// loss that is quadratic for small and linear for large errors. How well the
// model does on tasks it has not seen is told by leaving out, in turn, all
// pairs of one task, or of all tasks of one model and data set, and predicting
// them by what the others give.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	pairsPath := flag.String("pairs", "", "`file` of measured pairs (CSV)")
	profilesPath := flag.String("profiles", "", "`file` of the tasks' solo profiles (CSV)")
	out := flag.String("out", "mapper/interference/coefficients.go", "`file` to write")
	check := flag.Bool("check", false, "print the errors of the shipped coefficients on the pairs; write nothing")
	flag.Parse()
	if *pairsPath == "" || *profilesPath == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: fit --pairs FILE --profiles FILE [--out FILE | --check]")
		os.Exit(2)
	}
	if err := run(*pairsPath, *profilesPath, *out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(pairsPath, profilesPath, out string, check bool) error {
	pairs, err := read(pairsPath, profilesPath)
	if err != nil {
		return err
	}
	if check {
		fmt.Println(shippedErrors(pairs))
		return nil
	}
	model := fit(pairs)
	report := strings.Join([]string{
		errorsOf(pairs, model).String("in sample"),
		crossValidate(pairs, func(t workload) string { return t.id }).String("leaving one task out"),
		crossValidate(pairs, func(t workload) string { return t.family }).String("leaving one model out"),
		errorsOf(withoutSteps(pairs), model).String("in sample, steps not known"),
	}, "\n")
	fmt.Printf("%+v\n%s\n", model, report)
	return write(out, model, len(pairs), report)
}
