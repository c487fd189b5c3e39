package pairs

import (
	"fmt"
	"io"
	"strings"
)

// Profile describes a task as measured in a solo run.
type Profile struct {
	Task
	Measured bool   // its activity was measured
	GPUs     int    // number of GPUs on which it ran
	Origin   string // file and line, or empty
}

func (p Profile) where() string {
	if p.Origin == "" {
		return ""
	}
	return " (" + p.Origin + ")"
}

// ReadProfiles reads solo profiles from CSV, by their ids. It needs the columns
// workload_id, smact_mean and drama_mean and uses smocc_mean, model, dataset, batch_size,
// epochs, gpus, train_loop_s and end_to_end_s if present, in any order. It ignores other
// columns. Only a task on several GPUs may have several rows. Errors begin with name.
func ReadProfiles(name string, r io.Reader) (map[string]Profile, error) {
	t, err := readTable(name, r)
	if err != nil {
		return nil, err
	}
	if err := t.need("workload_id", "smact_mean", "drama_mean"); err != nil {
		return nil, err
	}
	profiles := map[string]Profile{}
	for _, row := range t.rows {
		p, err := readProfile(t, row)
		if err != nil {
			return nil, err
		}
		before, again := profiles[p.ID]
		if again && min(p.GPUs, before.GPUs) < 2 {
			return nil, t.errorf(row.line, "workload_id: %s a second time, after %s; only a task on several GPUs has several rows", p.ID, before.Origin)
		}
		if again {
			p = before // the first row belongs to the first GPU
			p.Origin = fmt.Sprintf("%s and %d", before.Origin, row.line)
		}
		profiles[p.ID] = p
	}
	if len(t.rows) == 0 {
		return nil, t.errorf(t.header, "no profiles after the header")
	}
	return profiles, nil
}

func readProfile(t *table, row row) (Profile, error) {
	model, dataset := t.text(row, "model"), t.text(row, "dataset")
	p := Profile{GPUs: 1, Origin: fmt.Sprintf("%s:%d", t.name, row.line)}
	p.ID, p.Family = t.text(row, "workload_id"), strings.TrimSpace(model+" "+dataset)
	if p.ID == "" {
		return p, t.errorf(row.line, "workload_id: empty")
	}
	smact, err := t.share(row, "smact_mean", &p.Load.SMACT)
	if err != nil {
		return p, err
	}
	drama, err := t.share(row, "drama_mean", &p.Load.DRAMA)
	if err != nil {
		return p, err
	}
	if _, err := t.share(row, "smocc_mean", &p.Load.SMOCC); err != nil {
		return p, err
	}
	p.Measured = smact && drama // the model does not use SMOCC
	var batch, epochs, gpus, loop, whole float64
	for _, c := range []struct {
		column string
		to     *float64
	}{{"batch_size", &batch}, {"epochs", &epochs}, {"gpus", &gpus}, {"train_loop_s", &loop}, {"end_to_end_s", &whole}} {
		if *c.to, _, err = t.number(row, c.column); err != nil {
			return p, err
		}
	}
	p.GPUs = int(max(1, min(gpus, 1000)))
	if loop == 0 {
		loop = whole
	}
	p.Load.Step = Step(model, dataset, batch, epochs, loop)
	return p, nil
}

// samples is the size of a data set's training part, as in package workloads (a test
// compares the two; an import would be in the wrong direction).
var samples = map[string]float64{
	"imagenet": 1_281_167, "cifar100": 50_000, "mnist": 60_000, "coco": 117_266,
	"pascal_voc": 1_464, "wikitext2": 18_700, "criteo_terabyte": 64_000_000,
}

// Step returns the time of one training step in seconds, computed from the time of the
// whole training loop, or 0 if not known. 0 epochs means one epoch.
func Step(model, dataset string, batch, epochs, loop float64) float64 {
	if model == "unet" { // its profile lacks them
		batch, epochs = 8, 90
	}
	if epochs == 0 {
		epochs = 1
	}
	if steps := epochs * samples[dataset] / batch; loop > 0 && steps > 0 && batch > 0 {
		return loop / steps
	}
	return 0
}
