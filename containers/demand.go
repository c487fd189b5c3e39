package containers

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Amounts in PyTorch's and CuPy's messages. PyTorch's units are binary.
var (
	triedRe    = re(`Tried to allocate ` + amount)
	processRe  = re(`this process has ` + amount + ` memory in use`)
	ownRe      = re(amount + ` is allocated by PyTorch`)
	idleRe     = re(amount + ` is reserved by PyTorch but unallocated`)
	reservedRe = re(amount + ` (?:reserved in total by PyTorch|cached)\b`)
	alreadyRe  = re(amount + ` already allocated`)
	cupyRe     = re(`Out of memory allocating ([\d,]+) bytes \(allocated so far: ([\d,]+) bytes`)
)

const amount = `([\d.]+) (bytes|KiB|MiB|GiB|TiB|KB|MB|GB|TB)\b`

// demand reads from an out-of-memory message how much GPU memory a process would
// have needed, in bytes: the memory it had plus the memory it asked for. 0: the
// message does not tell both. The memory it had is the first of these that the
// message tells: all memory of the process, PyTorch's share of it, or what is
// allocated of that share.
func demand(msg string) int64 {
	if m := cupyRe().FindStringSubmatch(msg); m != nil {
		tried, used := whole(m[1]), whole(m[2])
		if tried == 0 || used == 0 {
			return 0
		}
		return tried + used
	}
	tried, ok := find(triedRe, msg)
	if !ok {
		return 0
	}
	if used, ok := find(processRe, msg); ok {
		return used + tried
	}
	if own, ok := find(ownRe, msg); ok {
		idle, _ := find(idleRe, msg)
		return own + idle + tried
	}
	if reserved, ok := find(reservedRe, msg); ok {
		return reserved + tried
	}
	if already, ok := find(alreadyRe, msg); ok {
		return already + tried
	}
	return 0
}

func find(re func() *regexp.Regexp, msg string) (int64, bool) {
	m := re().FindStringSubmatch(msg)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= unit[m[2][0]]
	if err != nil || n > maxMemory {
		return 0, false
	}
	return int64(math.Round(n)), true
}

var unit = map[byte]float64{'b': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}

// maxMemory is more bytes than any machine has: a larger number is a misprint.
const maxMemory = 1 << 50

func whole(s string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, ",", ""), 10, 64)
	if err != nil || n > maxMemory {
		return 0
	}
	return n
}
