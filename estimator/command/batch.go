package command

import (
	"slices"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
)

// batchWord matches the usual names of a batch size, as in --batch-size 64,
// --batch_size=64, -b 64, train.batch_size=64, --per_device_train_batch_size 8, and
// BATCH_SIZE=64 in the environment.
const batchWord = `(?:(?:train|micro|per[-_]device|per[-_]gpu|per[-_]device[-_]train|per[-_]gpu[-_]train)[-_])?batch(?:[-_]?size)?(?:[-_](?:training|per[-_](?:gpu|device)))?|samples_per_gpu|bs|bsz`

// section matches the section prefixes of a name, such as data. in data.batch_size.
const section = `(?:[a-z_][\w-]*\.)*`

var (
	batchAssigned = lazyregexp.New(`(?i)^(?:--?|\+{0,2})` + section + `(?:` + batchWord + `)=(\d{1,9})$`)
	batchFlag     = lazyregexp.New(`(?i)^(?:--` + section + `(?:` + batchWord + `)|-(?:b|bs))$`)
	batchShort    = lazyregexp.New(`^-b(\d{1,9})$`)
	// otherBatch matches a batch size that is not the training's.
	otherBatch    = lazyregexp.New(`(?i)\b(?:val|valid|validation|eval|evaluation|test|inference|predict)[\w-]*\.`)
	batchVariable = lazyregexp.New(`(?i)^(?:` + batchWord + `)=(\d{1,9})$`)
)

// Batch returns the batch size from a command line or else from the variables env, or 0 if
// neither sets one.
func Batch(command, env []string) int {
	if batch, _ := CutBatch(command); batch > 0 {
		return batch
	}
	for _, kv := range slices.Backward(env) { // the last value counts
		if m := batchVariable().FindStringSubmatch(kv); m != nil {
			return atLeast1(m[1])
		}
	}
	return 0
}

// IsBatch reports whether a variable in the form KEY=value sets a batch size.
func IsBatch(variable string) bool { return batchVariable().MatchString(variable) }

// CutBatch returns the batch size of a command line and the command without it, or 0 and
// the whole command if the command has no batch size. It also searches words with spaces,
// such as a shell's script.
func CutBatch(command []string) (batch int, rest []string) {
	for i, word := range command {
		if otherBatch().MatchString(word) && !strings.Contains(word, " ") {
			continue
		}
		m := batchAssigned().FindStringSubmatch(word)
		if m == nil {
			m = batchShort().FindStringSubmatch(word)
		}
		switch {
		case m != nil && atLeast1(m[1]) > 0:
			return atLeast1(m[1]), slices.Concat(command[:i], command[i+1:])
		case batchFlag().MatchString(word) && i+1 < len(command) && atLeast1(command[i+1]) > 0:
			return atLeast1(command[i+1]), slices.Concat(command[:i], command[i+2:])
		}
	}
	for i, word := range command {
		if words := strings.Fields(word); len(words) > 1 {
			if batch, cut := CutBatch(words); batch > 0 {
				return batch, slices.Concat(command[:i], []string{strings.Join(cut, " ")}, command[i+1:])
			}
		}
	}
	return 0, command
}

// atLeast1 parses a number from 1 to 1e9. It returns 0 for any other word.
func atLeast1(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > 1e9 {
		return 0
	}
	return n
}
