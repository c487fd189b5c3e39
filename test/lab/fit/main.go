// Fit finds the coefficients of carma's interference model ([interference.Model]) from
// pairs of tasks that were measured together and alone, and writes
// coefficients.go:
//
//	bin/lab/fit    (in the repository's root, after make bin/lab)
//
// The pairs and the tasks' solo profiles that carma ships with are pairs.csv
// and profiles.csv beside this command; --pairs and --profiles name others,
// in the form that package pairs reads. With --check it writes nothing: it prints the errors of the coefficients
// that carma ships with on those pairs.
//
// The fit minimizes the error of the speed of each task of a pair while both run (columns
// overlap_speed_a and _b; above 1 counts as 1), by a loss that is quadratic for small and
// linear for large errors. The error on unseen tasks is measured by leaving out, in turn,
// all pairs of one task, or of all tasks of one model and data set, and predicting them
// by a fit to the others.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	pairsPath := flag.String("pairs", "", "`file` of measured pairs (CSV; default: the shipped ones)")
	profilesPath := flag.String("profiles", "", "`file` of the tasks' solo profiles (CSV; default: the shipped ones)")
	out := flag.String("out", "mapper/interference/coefficients.go", "`file` to write")
	check := flag.Bool("check", false, "print the errors of the shipped coefficients on the pairs; write nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: fit [--pairs FILE] [--profiles FILE] [--out FILE | --check]")
		os.Exit(2)
	}
	if err := run(*pairsPath, *profilesPath, *out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

func run(pairsPath, profilesPath, out string, check bool) error {
	all, err := read(pairsPath, profilesPath)
	if err != nil {
		return err
	}
	if check {
		fmt.Println(shippedErrors(all))
		return nil
	}
	model := fit(all)
	text := report(all, model)
	fmt.Printf("%+v\n%s\n", model, text)
	return write(out, model, len(all), text)
}
