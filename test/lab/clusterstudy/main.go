// Clusterstudy draws what carma replay --csv has written of a cluster: the share of the
// tasks that have ended so long after their submission, by policy, as SVG.
//
//	make cluster-study PHILLY=philly-82k.csv.gz    (in the repository's root; many minutes)
package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "clusterstudy:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("write clusterstudy TITLE FILE, where FILE is what carma replay --csv has written")
	}
	f, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	_, err = io.WriteString(out, plot(args[0], all))
	return err
}

// series are the completion times of a policy's tasks in seconds, the shortest first.
type series struct {
	policy string
	jct    []float64
}

// read takes the completion times out of a table of tasks, in the table's order of
// policies.
func read(in io.Reader) (all []series, err error) {
	rows := csv.NewReader(in)
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("the first line: %w", err)
	}
	policy, jct := slices.Index(head, "policy"), slices.Index(head, "jct_s")
	if policy < 0 || jct < 0 {
		return nil, fmt.Errorf("there are no columns policy and jct_s")
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		s, err := strconv.ParseFloat(row[jct], 64)
		if err != nil || !(s > 0) {
			return nil, fmt.Errorf("jct_s %q is not a time above 0", row[jct])
		}
		i := slices.IndexFunc(all, func(x series) bool { return x.policy == row[policy] })
		if i < 0 {
			i, all = len(all), append(all, series{policy: row[policy]})
		}
		all[i].jct = append(all[i].jct, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("it has no tasks")
	}
	for i := range all {
		slices.Sort(all[i].jct)
	}
	return all, nil
}
