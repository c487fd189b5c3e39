package estimate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"carma/cmd/carma/cli"
	"carma/configs/models"
	"carma/estimator/booking"
	environments "carma/estimator/environment"
	"carma/estimator/evaluate"
	"carma/estimator/methods"
	"carma/estimator/networks/named"
	"carma/internal/units"
)

// report is the output of estimate.
type report struct {
	Model       string        `json:"model"`
	Family      models.Family `json:"family"`
	Train       models.Train  `json:"train"`
	Environment string        `json:"environment"`
	Confidence  float64       `json:"confidence"`
	// Measured is the measured peak of the same training in bytes, or 0 if unknown.
	Measured  int64       `json:"measured_bytes,omitempty"`
	Estimates []estimated `json:"estimates"`

	about string
}

type estimated struct {
	Estimator string         `json:"estimator"`
	Source    string         `json:"source"`
	Point     int64          `json:"point_bytes,omitempty"`
	Upper     int64          `json:"upper_bytes,omitempty"`
	Micros    float64        `json:"micros"`
	Error     *float64       `json:"error,omitempty"`
	Parts     []methods.Part `json:"parts,omitempty"`
	Warnings  []string       `json:"warnings,omitempty"`
	// Why is the reason why there is no estimate.
	Why string `json:"why,omitempty"`
}

// estimates returns the estimates of every method.
func estimates(c *models.Config, env *environments.Environment, chosen []methods.Method, confidence float64, measured int64) report {
	r := reportOf(c.Name, c.Family, c.Train, env, confidence)
	r.Measured = measured
	r.ask(chosen, methods.Subject{Config: c, Environment: &env.Environment, Confidence: confidence, Capacity: env.Capacity})
	return r
}

func reportOf(name string, family models.Family, train models.Train, env *environments.Environment, confidence float64) report {
	return report{Model: name, Family: family, Train: train, Environment: env.Name, Confidence: confidence, about: env.About}
}

// ask adds the methods' answers for s.
func (r *report) ask(chosen []methods.Method, s methods.Subject) {
	for _, m := range chosen {
		start := time.Now()
		answer, err := m.Estimate(s)
		row := estimated{
			Estimator: m.Name(), Source: m.Source(), Point: answer.Point, Upper: answer.Upper,
			Micros: float64(time.Since(start).Nanoseconds()) / 1000, Parts: answer.Parts, Warnings: answer.Warnings,
		}
		switch {
		case err != nil:
			row.Why = strings.TrimPrefix(err.Error(), methods.ErrNotApplicable.Error()+": ")
			if !errors.Is(err, methods.ErrNotApplicable) {
				row.Why = err.Error()
			}
		case r.Measured > 0:
			e := float64(answer.Point)/float64(r.Measured) - 1
			row.Error = &e
		}
		r.Estimates = append(r.Estimates, row)
	}
}

func printEstimates(a *cli.App, r report, asJSON bool) error {
	if asJSON {
		return a.JSON(r)
	}
	a.Println(fmt.Sprintf("%s: %s, in %s (%s)", cli.Printable(r.Model), trainText(r.Train), r.Environment, r.about))
	if r.Measured > 0 {
		a.Println(fmt.Sprintf("measured peak: %s on each GPU", units.Bytes(r.Measured)))
	}
	a.Println()
	t := &cli.Table{Columns: []cli.Column{{Title: "ESTIMATOR"}, {Title: "POINT", Right: true}, {Title: fmt.Sprintf("UPPER %g%%", 100*r.Confidence), Right: true}, {Title: "TIME", Right: true}, {Title: "ERROR", Right: true}, {Title: "", Least: 10}}}
	for _, e := range r.Estimates {
		if e.Why != "" {
			t.Add(e.Estimator, "-", "-", "", "", e.Why)
			continue
		}
		off, upper := "", units.Bytes(e.Upper).String()
		if e.Error != nil {
			off = fmt.Sprintf("%+.1f %%", 100**e.Error)
		}
		if e.Upper == e.Point {
			upper = "none"
		}
		t.Add(e.Estimator, units.Bytes(e.Point).String(), upper, micros(e.Micros), off, "")
	}
	if err := a.Print(t); err != nil {
		return err
	}
	for _, e := range r.Estimates {
		if e.Estimator == "carma" && e.Why == "" {
			a.Println()
			a.Println("carma: " + partsText(e.Parts))
			for _, w := range e.Warnings {
				a.Println("note: " + cli.Printable(w))
			}
		}
	}
	return nil
}

func micros(us float64) string {
	if us < 1000 {
		return fmt.Sprintf("%.0f us", us)
	}
	return fmt.Sprintf("%.1f ms", us/1000)
}

func partsText(parts []methods.Part) string {
	var out []string
	for _, p := range parts {
		if p.Bytes == 0 {
			continue
		}
		sign := ""
		if p.Bytes < 0 {
			sign, p.Bytes = "-", -p.Bytes
		}
		out = append(out, p.Name+" "+sign+units.Bytes(p.Bytes).String())
	}
	return strings.Join(out, ", ")
}

// trainText describes a training's settings in a few words.
func trainText(t models.Train) string {
	words := []string{fmt.Sprintf("batch %d", t.Batch), orDefault(string(t.Optimizer), models.Optimizers()), orDefault(string(t.Precision), models.Precisions())}
	if t.Accumulate > 1 {
		words = append(words, fmt.Sprintf("accumulated %d times", t.Accumulate))
	}
	if t.Masters {
		words = append(words, "32-bit copies of the weights")
	}
	if t.Attention != "" {
		words = append(words, t.Attention+" attention")
	}
	if t.Padded {
		words = append(words, "padded")
	}
	if t.Compile {
		words = append(words, "compiled")
	}
	if t.Loss == "chunked" {
		words = append(words, "chunked loss")
	}
	if t.Offload != "" {
		words = append(words, "offloaded "+t.Offload)
	}
	if t.Checkpointing {
		words = append(words, "checkpointing")
	}
	if t.SequenceParallel > 1 {
		words = append(words, fmt.Sprintf("each sample over %d GPUs", t.SequenceParallel))
	}
	if n := max(t.GPUs, t.Parallel.TensorParallel()); n > 1 {
		words = append(words, fmt.Sprintf("%d GPUs (%s)", n, t.Parallel))
	}
	return strings.Join(words, ", ")
}

// measuredPeak returns the measured peak of exactly this training, or 0 if unknown.
func measuredPeak(ref string, c *models.Config) int64 {
	peak, ok := booking.NewCatalogue().MeasuredPeak(ref, c.Train.Batch, max(c.Train.GPUs, 1))
	if !ok || !named.Known(ref) {
		return 0
	}
	with := evaluate.MeasuredWith(ref)
	with.Batch = c.Train.Batch
	same, err := named.Build(ref, with)
	if err != nil || same.NetworkHash() != c.NetworkHash() || c.Train.Precision != same.Train.Precision || c.Train.Optimizer != same.Train.Optimizer {
		return 0
	}
	return int64(peak)
}
