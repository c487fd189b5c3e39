package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"carma/internal/units"

	"carma/configs/workloads"
	"carma/runner/gpu/simgpu/wire"
)

const usage = "usage: simtask PROFILE [flags]; simtask --list prints the profiles, simtask --help the flags"

// options contains the command line.
type options struct {
	profile  string
	campaign string
	time     time.Duration
	peak     string
	context  string
	smact    float64
	steps    int
	failAt   string
	hang     bool
	list     bool
	form     string
}

// parse parses flags before and after the profile. Help goes to out.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("simtask", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.StringVar(&o.campaign, "campaign", workloads.DefaultCampaign, "measurements to go by: `v1 or v2`")
	f.Func("time", "run `time` alone, in simulated time, instead of the measured one: 90s, 2h, 1-12:00:00", func(text string) (err error) {
		o.time, err = units.ParseTime(text)
		return err
	})
	f.StringVar(&o.peak, "peak", "", "peak memory per GPU, for example `12G`, instead of the measured one")
	f.StringVar(&o.context, "context", "", "memory of the CUDA context, for example `500M`")
	f.Float64Var(&o.smact, "smact", 0, "SM activity alone, `0 to 1`, instead of the measured one; the other activities change with it")
	f.IntVar(&o.steps, "steps-per-epoch", 0, "steps of an epoch, instead of data set / batch size")
	f.StringVar(&o.failAt, "fail-at", "", "raise a ValueError after this share of the run, for example `40%`")
	f.BoolVar(&o.hang, "hang", false, "take the memory, then do nothing until stopped")
	f.StringVar(&o.form, "print", plain, "print progress as `a tool` does: plain, steps, tqdm, hf, lightning, keras or none")
	f.BoolVar(&o.list, "list", false, "print the profiles")
	var names []string
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: simtask PROFILE [flags]")
			f.SetOutput(out)
			f.PrintDefaults()
			return o, err
		} else if err != nil {
			return o, fmt.Errorf("%w; %s", err, usage)
		}
		if f.NArg() == 0 {
			break
		}
		names = append(names, f.Arg(0))
		args = f.Args()[1:]
	}
	if len(names) != 1 && !o.list {
		return o, errors.New(usage)
	}
	o.profile = strings.Join(names, "")
	return o, nil
}

// job describes the simulated run.
type job struct {
	name           string
	model, dataset string
	batch, epochs  int
	steps          int           // steps per epoch
	seconds        float64       // whole run without co-location, simulated
	context        units.Bytes   // CUDA context on every GPU
	peaks          []units.Bytes // by GPU, context included
	loads          []wire.Load   // by GPU, while training
	failAt         float64       // seconds of training, or infinite for never
	hang           bool
	form           string // format of printed progress
}

// idle returns a load of zero on each GPU.
func (j job) idle() []wire.Load { return make([]wire.Load, len(j.loads)) }

func (o options) job() (job, error) {
	p, err := workloads.Find(o.profile)
	if err != nil {
		return job{}, err
	}
	c, err := p.Campaign(o.campaign)
	if err != nil {
		return job{}, err
	}
	peaks, err := p.Peaks(o.campaign)
	if err != nil {
		return job{}, err
	}
	j := job{
		name: p.Name, model: p.Model, dataset: p.Dataset, batch: p.BatchSize, epochs: p.Epochs,
		seconds: c.RunTime.Seconds(), context: workloads.Context(o.campaign), peaks: peaks,
		failAt: math.Inf(1), hang: o.hang, form: cmp.Or(o.form, plain),
	}
	for _, a := range p.Activities() {
		j.loads = append(j.loads, wire.Load{SMACT: a.SMACT, SMOCC: a.SMOCC, DRAMA: a.DRAMA, Step: p.StepTime().Seconds()})
	}
	j.steps = p.StepsPerEpoch()
	if err := o.override(&j); err != nil {
		return job{}, err
	}
	return j, nil
}

// override applies the flags that replace measured values.
func (o options) override(j *job) error {
	if err := checkForm(j.form); err != nil {
		return err
	}
	if o.time < 0 || o.steps < 0 {
		return errors.New("--time and --steps-per-epoch cannot be negative")
	}
	if o.time > 0 {
		j.seconds = o.time.Seconds()
	}
	if o.steps > 0 {
		j.steps = o.steps
	}
	if o.context != "" {
		n, err := units.ParseBytes(o.context)
		if err != nil {
			return fmt.Errorf("--context: %w", err)
		}
		j.context = n
	}
	if o.peak != "" {
		n, err := units.ParseBytes(o.peak)
		if err != nil {
			return fmt.Errorf("--peak: %w", err)
		}
		first := j.peaks[0]
		for i, p := range j.peaks {
			j.peaks[i] = n.Scale(float64(p) / float64(first))
		}
	}
	if o.smact != 0 {
		if !(o.smact > 0 && o.smact <= 1) {
			return fmt.Errorf("--smact %v is not between 0 and 1", o.smact)
		}
		f := o.smact / j.loads[0].SMACT
		for i, l := range j.loads {
			j.loads[i] = wire.Load{SMACT: min(1, l.SMACT*f), SMOCC: min(1, l.SMOCC*f), DRAMA: min(1, l.DRAMA*f), Step: l.Step}
		}
	}
	if o.failAt != "" {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(o.failAt, "%"), 64)
		if err != nil || !(percent >= 0 && percent <= 100) {
			return fmt.Errorf("--fail-at %q is not a share of the run; write for example 40%%", o.failAt)
		}
		j.failAt = j.seconds * percent / 100
	}
	return nil
}

func list(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tGPUS\tTIME\tPEAK\tSMACT\tALIASES")
	for _, p := range workloads.All() {
		c, err := p.Campaign("")
		if err != nil {
			continue // a test checks that every profile has the default campaign
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%.2f\t%s\n", p.Name, p.GPUs, c.RunTime.Round(time.Second), c.Memory,
			p.Activity.SMACT, strings.Join(p.Aliases, " "))
	}
	w.Flush()
}
