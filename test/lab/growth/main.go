// Growth measures how the cost of a replay in virtual time grows with the trace.
// It writes test/lab/studies/growth.svg and the matching table of test/lab/studies.md:
//
//	make bin/lab && bin/lab/growth [--runs 3]    (in the repository's root; minutes)
//
// Each run of BenchmarkGrowth of mapper/sim is a process of its own on one core
// (GOMAXPROCS=1), so that its peak memory belongs to one replay.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The files and marks of the results.
const (
	plotFile  = "test/lab/studies/growth.svg"
	tableFile = "test/lab/studies.md"
	begin     = "<!-- growth: written by bin/lab/growth -->\n"
	end       = "<!-- end of growth -->\n"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("growth: ")
	runs := flag.Int("runs", 3, "runs of each size")
	flag.Parse()
	if *runs < 1 || flag.NArg() > 0 {
		log.Fatal("usage: growth [--runs 3]")
	}
	series, err := measure(*runs)
	if err != nil {
		log.Fatal(err)
	}
	if err := write(series); err != nil {
		log.Fatal(err)
	}
}

// measure runs every size this number of times. It takes the sizes in turn, so that a
// busy moment of the machine does not affect only one size.
func measure(runs int) ([]*series, error) {
	folder, err := os.MkdirTemp("", "carma-growth")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, "sim.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "./mapper/sim").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the benchmark: %w: %s", err, out)
	}
	all := newSeries()
	for range runs {
		for _, s := range all {
			for i := range s.points {
				out, err := benchmark(binary, s.name, s.points[i].tasks)
				if err != nil {
					return nil, err
				}
				if err := s.points[i].add(out); err != nil {
					return nil, err
				}
				fmt.Print(out)
			}
		}
	}
	return all, nil
}

// benchmark runs one benchmark and returns its line of results.
func benchmark(binary, load string, tasks int) (string, error) {
	pattern := fmt.Sprintf("^BenchmarkGrowth$/^%s$/^%d$", load, tasks)
	times := fmt.Sprintf("%dx", max(1, 50_000/tasks)) // short ones more than once
	cmd := exec.Command(binary, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", times)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", pattern, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "BenchmarkGrowth/") {
			return line, nil
		}
	}
	return "", fmt.Errorf("%s: no result in %s", pattern, out)
}

// write writes the plot and the table into the docs.
func write(all []*series) error {
	content, err := os.ReadFile(tableFile)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(content, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return fmt.Errorf("%s: no place for the table, between %q and %q", tableFile, begin, end)
	}
	content = []byte(string(before) + begin + table(all) + end + string(after))
	if err := os.WriteFile(tableFile, content, 0o644); err != nil {
		return err
	}
	return os.WriteFile(plotFile, []byte(plot(all)), 0o644)
}
