// Package taskkind groups tasks by the work that they do: by kind (equal work), by program (equal
// but for the batch size) and by family (the same model). The mapper learns from the earlier
// tasks of the same kind, program and family.
package taskkind

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carma/estimator/command"
	"carma/internal/lazyregexp"
	"carma/runner/api"
	"carma/runner/record"
)

// Kind returns the digest of a task's image, command, environment, number of GPUs and
// batch size. For a task without an image, the environment and the working folder replace
// the image. Tasks of one kind do the same work.
func Kind(rec *record.Record) string { return digest(rec, rec.Submit.Command, BatchSize(rec)) }

// Program returns the same digest without the batch size, or "" if the batch size is
// unknown.
func Program(rec *record.Record) string {
	if BatchSize(rec) == 0 {
		return ""
	}
	_, rest := command.CutBatch(rec.Submit.Command)
	return digest(rec, rest, 0)
}

func digest(rec *record.Record, argv []string, batch int) string {
	sub := rec.Submit
	h := sha256.New()
	parts := [][]string{{cmp.Or(rec.ImageID, sub.Source()), strconv.Itoa(sub.GPUs)}, sub.Entrypoint, argv}
	if sub.Bare() { // without an image, the same command in another folder is another program
		parts = append(parts, []string{"folder", sub.WorkDir})
	}
	if batch > 0 {
		parts = append(parts, []string{strconv.Itoa(batch)})
	}
	if set := training(&sub); len(set) > 0 { // without settings the digest equals the digest of older programs
		parts = append(parts, append([]string{"training"}, set...))
	}
	if env := telling(sub.Env); len(env) > 0 { // without variables the digest equals the digest of older programs
		parts = append(parts, append([]string{"environment"}, env...))
	}
	for _, part := range parts {
		for _, word := range part {
			fmt.Fprintf(h, "%q ", word)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// training returns the settings of the training that were given beside the command, and
// the described network. A program may get these by other means than its command line.
func training(sub *api.Submit) (set []string) {
	for _, key := range slices.Sorted(maps.Keys(sub.Train)) {
		set = append(set, key+"="+sub.Train[key])
	}
	if len(sub.Network) > 0 {
		set = append(set, "network "+short(sub.Network))
	}
	return set
}

// Family returns the name under which the activity of tasks of one model is learned. It
// adds a digest of a described network, because network files of many models have the
// same name.
func Family(sub *api.Submit) string {
	if len(sub.Network) > 0 {
		return sub.Model() + "@" + short(sub.Network)
	}
	return sub.Model()
}

// short returns a digest of a text.
func short(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// telling returns the variables that may say what work a task does, sorted, the last value
// of each name. It leaves out batch sizes, which are compared separately, and names that
// differ from run to run for other reasons.
func telling(env []string) []string {
	last := map[string]string{} // look-up only
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !command.IsBatch(kv) && !perRun().MatchString(name) {
			last[name] = kv
		}
	}
	return slices.Sorted(maps.Values(last))
}

// perRun matches variables that change with the run and not with its work: credentials,
// seeds, names for experiment trackers, and carma's own variables for a task's place in an
// array.
var perRun = lazyregexp.New(`(?i)(^|_)(KEY|TOKEN|SECRET|PASSWORD|SEED)$|^(WANDB|MLFLOW|COMET|NEPTUNE|CLEARML|CARMA_ARRAY)_|^(RUN|EXP|EXPERIMENT|JOB)_?(ID|NAME)$`)

// BatchSize returns a task's batch size: as submitted, else from its command or
// environment, or 0 if unknown.
func BatchSize(rec *record.Record) int {
	if rec.Submit.BatchSize > 0 {
		return rec.Submit.BatchSize
	}
	return command.Batch(rec.Submit.Command, rec.Submit.Env)
}
