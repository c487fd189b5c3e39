package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind is a digest of what tasks that do the same work have in common: image,
// command, number of GPUs and batch size.
func kind(rec *Record) string { return digest(rec, rec.Submit.Command, batchSize(rec)) }

// program is a digest of what tasks have in common that differ only in their
// batch size; empty where that is not known.
func program(rec *Record) string {
	if batchSize(rec) == 0 {
		return ""
	}
	_, rest := cutBatch(rec.Submit.Command)
	return digest(rec, rest, 0)
}

func digest(rec *Record, command []string, batch int) string {
	sub := rec.Submit
	h := sha256.New()
	parts := [][]string{{cmp.Or(rec.ImageID, sub.Image), strconv.Itoa(sub.GPUs)}, sub.Entrypoint, command}
	if batch > 0 {
		parts = append(parts, []string{strconv.Itoa(batch)})
	}
	for _, part := range parts {
		for _, word := range part {
			fmt.Fprintf(h, "%q ", word)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// batchSize is what is known of a task's batch size: what it was submitted
// with, else what its command or its environment says; 0: unknown.
func batchSize(rec *Record) int {
	if rec.Submit.BatchSize > 0 {
		return rec.Submit.BatchSize
	}
	if batch, _ := cutBatch(rec.Submit.Command); batch > 0 {
		return batch
	}
	for _, kv := range slices.Backward(rec.Submit.Env) { // the last one counts
		if m := batchVariable.FindStringSubmatch(kv); m != nil {
			return atLeast1(m[1])
		}
	}
	return 0
}

// The usual spellings of a batch size: --batch-size 64, --batch_size=64, -b 64,
// train.batch_size=64, --per_device_train_batch_size 8, and BATCH_SIZE=64 in
// the environment.
const batchWord = `(?:(?:train|micro|per[-_]device[-_]train|per[-_]gpu[-_]train)[-_])?batch(?:[-_]?size)?|bs|bsz`

var (
	batchAssigned = regexp.MustCompile(`(?i)^(?:--?|\+{0,2}(?:[a-z_][\w-]*\.)*)(?:` + batchWord + `)=(\d{1,9})$`)
	batchFlag     = regexp.MustCompile(`(?i)^(?:--(?:` + batchWord + `)|-(?:b|bs))$`)
	batchShort    = regexp.MustCompile(`^-b(\d{1,9})$`)
	batchVariable = regexp.MustCompile(`(?i)^(?:` + batchWord + `)=(\d{1,9})$`)
)

// cutBatch finds the batch size in a command line and returns the command
// without it; 0 and the whole command if there is none. A shell's script, one
// word of many, is looked through as well.
func cutBatch(command []string) (batch int, rest []string) {
	for i, word := range command {
		m := batchAssigned.FindStringSubmatch(word)
		if m == nil {
			m = batchShort.FindStringSubmatch(word)
		}
		switch {
		case m != nil && atLeast1(m[1]) > 0:
			return atLeast1(m[1]), slices.Concat(command[:i], command[i+1:])
		case batchFlag.MatchString(word) && i+1 < len(command) && atLeast1(command[i+1]) > 0:
			return atLeast1(command[i+1]), slices.Concat(command[:i], command[i+2:])
		}
	}
	for i, word := range command {
		if words := strings.Fields(word); len(words) > 1 {
			if batch, cut := cutBatch(words); batch > 0 {
				return batch, slices.Concat(command[:i], []string{strings.Join(cut, " ")}, command[i+1:])
			}
		}
	}
	return 0, command
}

// atLeast1 is the number that a word is; 0 if it is none above 0.
func atLeast1(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > 1e9 {
		return 0
	}
	return n
}
