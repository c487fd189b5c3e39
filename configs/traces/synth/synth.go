// Package synth writes synthetic logs in the formats of the public logs, for tests,
// benchmarks and the docs. No value in them was measured: gaps and run times are drawn from
// exponential and log-normal distributions.
package synth

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Options describe the log. Equal options give equal bytes.
type Options struct {
	Jobs int
	Seed uint64
}

// job is one synthetic job.
type job struct {
	number            int
	submitted         time.Time
	waited, ran       time.Duration
	gpus, user, state int
}

// draws returns a function that returns the next job. gap is the mean time
// between two jobs.
func draws(o Options, first time.Time, gap time.Duration) func() job {
	r := rand.New(rand.NewPCG(o.Seed, 1))
	at, n := first, 0
	return func() job {
		n++
		at = at.Add(time.Duration(r.ExpFloat64() * float64(gap)).Round(time.Second))
		run := math.Exp(6.5 + 1.6*r.NormFloat64()) // a median of 11 minutes
		return job{
			number: n, submitted: at, user: r.IntN(200), state: r.IntN(10),
			waited: time.Duration(r.ExpFloat64()*120) * time.Second,
			ran:    time.Duration(math.Min(run, 30*86400)) * time.Second,
			gpus:   []int{1, 1, 1, 1, 1, 1, 2, 2, 4, 8}[r.IntN(10)],
		}
	}
}

const layout = "2006-01-02 15:04:05"

// Philly writes a log in the form of cluster_job_log. One in 50 jobs was never scheduled,
// and one in 50 is still running. One in 12 has a second attempt.
func Philly(w io.Writer, o Options) error {
	next := draws(o, time.Date(2017, 10, 3, 9, 0, 0, 0, time.UTC), 100*time.Second)
	b := bufio.NewWriter(w)
	b.WriteString("[\n")
	for i := range o.Jobs {
		j := next()
		status := []string{"Pass", "Pass", "Pass", "Pass", "Pass", "Pass", "Pass", "Killed", "Killed", "Failed"}[j.state]
		fmt.Fprintf(b, "    {\n        \"status\": %q,\n        \"vc\": \"vc%02d\",\n        \"jobid\": \"application_1500000000000_%04d\",\n        \"attempts\": [", status, j.user%14, j.number)
		if i%50 != 49 {
			phillyAttempts(b, i, j)
		}
		comma := ","
		if i == o.Jobs-1 {
			comma = ""
		}
		fmt.Fprintf(b, "],\n        \"submitted_time\": %q,\n        \"user\": \"u%03d\"\n    }%s\n", j.submitted.Format(layout), j.user, comma)
	}
	b.WriteString("]\n")
	return b.Flush()
}

func phillyAttempts(b *bufio.Writer, i int, j job) {
	start := j.submitted.Add(j.waited)
	end := fmt.Sprintf("%q", start.Add(j.ran).Format(layout))
	if i%50 == 48 {
		end = "null"
	}
	one := func(start, end string) {
		fmt.Fprintf(b, "\n            {\n                \"start_time\": %q,\n                \"end_time\": %s,\n                \"detail\": [\n                    {\n                        \"ip\": \"m%d\",\n                        \"gpus\": [\n", start, end, 1+j.user)
		for g := range j.gpus {
			comma := ","
			if g == j.gpus-1 {
				comma = ""
			}
			fmt.Fprintf(b, "                            \"gpu%d\"%s\n", g, comma)
		}
		b.WriteString("                        ]\n                    }\n                ]\n            }")
	}
	if i%12 == 11 {
		half := start.Add(j.ran / 2)
		one(start.Format(layout), fmt.Sprintf("%q", half.Format(layout)))
		b.WriteString(",")
		one(half.Format(layout), end)
	} else {
		one(start.Format(layout), end)
	}
	b.WriteString("\n        ")
}

// Helios writes a log in the form of a cluster_log.csv. Half of the jobs ask
// for no GPU.
func Helios(w io.Writer, o Options) error {
	next := draws(o, time.Date(2020, 6, 9, 8, 0, 0, 0, time.UTC), 60*time.Second)
	b := bufio.NewWriter(w)
	b.WriteString("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n")
	states := strings.Fields("COMPLETED COMPLETED COMPLETED COMPLETED COMPLETED COMPLETED CANCELLED CANCELLED FAILED FAILED")
	for i := range o.Jobs {
		j := next()
		state := states[j.state]
		if i%500 == 499 {
			state = "TIMEOUT"
		}
		gpus := j.gpus * (1 - i%2)
		start := j.submitted.Add(j.waited)
		fmt.Fprintf(b, "%d,u%03d,vc%02d,%d,%d,%d,%s,%s,%s,%s,%d,%d\n", 1425000+j.number, j.user, j.user%20, gpus, max(1, 4*gpus), 1, state,
			j.submitted.Format(layout), start.Format(layout), start.Add(j.ran).Format(layout), int(j.ran.Seconds()), int(j.waited.Seconds()))
	}
	return b.Flush()
}
