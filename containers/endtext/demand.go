package endtext

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"carma/internal/lazyregexp"
)

// amount matches an amount of memory. Units without an i are binary too, because the
// frameworks that print them use them so.
const amount = `([\d.,]+) ?(bytes|byte|[KMGT]i?B|B)\b`

// used contains patterns for the memory that the process already had, refused for the
// memory that it requested. If several match, the first one counts.
var (
	used = []func() *regexp.Regexp{
		lazyregexp.New(`this process has ` + amount + ` memory in use`),
		lazyregexp.New(amount + ` (?:reserved in total by PyTorch|cached)\b`),
		lazyregexp.New(amount + ` already allocated`),
		lazyregexp.New(`allocated so far: ` + amount),
		lazyregexp.New(`Currently allocated *: *` + amount),
		lazyregexp.New(amount + ` memory has been allocated`),
		lazyregexp.New(`Memory pool usage: ` + amount),
	}
	refused = []func() *regexp.Regexp{
		lazyregexp.New(`[Tt]ried to allocate ` + amount),
		lazyregexp.New(`Out of memory allocating ` + amount),
		lazyregexp.New(`Requested *: *` + amount),
		lazyregexp.New(`Cannot allocate ` + amount),
		lazyregexp.New(`trying to allocate ` + amount),
		lazyregexp.New(`[Rr]equested amount of GPU memory \(` + amount),
		lazyregexp.New(`[Rr]equested(?:Space:| bytes(?: of)?:?|:?) +` + amount),
		lazyregexp.New(`allocating ` + amount + ` on device`),
		lazyregexp.New(`\bsize ` + amount),
		lazyregexp.New(`[Ff]ailed to allocate (?:memory )?(?:of )?(?:size )?\(?` + amount),
		lazyregexp.New(`(?:alloc\w*)\D{0,40}[ :=(]` + amount),
	}
	ownRe   = lazyregexp.New(amount + ` is allocated by PyTorch`)
	idleRe  = lazyregexp.New(amount + ` is reserved by PyTorch but unallocated`)
	desired = lazyregexp.New(`desired GPU memory utilization \([\d.]+, ` + amount)
	shapeRe = lazyregexp.New(`OOM when allocating tensor with shape\[([\d,]+)\] and type (\w+)`)
	needsRe = lazyregexp.New(amount + ` (?:\S+ )?KV cache is needed.*available KV cache memory \(` + amount)
)

// demand parses from an out-of-memory message the GPU memory in bytes that the process
// would have needed: request is the refused request, total is request plus the memory
// that the process already had. Both are 0 if the message does not mention them.
func demand(msg string) (total, request int64) {
	if n, ok := find(desired, msg); ok { // nothing was allocated yet
		return n, n
	}
	if m := needsRe().FindStringSubmatch(msg); m != nil {
		need, have := bytesOf(m[1], m[2]), bytesOf(m[3], m[4])
		return 0, max(0, need-have)
	}
	for _, re := range refused {
		if n, ok := find(re, msg); ok {
			request = n
			break
		}
	}
	if request == 0 {
		request = tensorBytes(msg)
	}
	if request == 0 || request == maxMemory {
		return 0, request
	}
	if own, ok := find(used[0], msg); ok {
		return own + request, request
	}
	if own, ok := find(ownRe, msg); ok {
		idle, _ := find(idleRe, msg)
		return own + idle + request, request
	}
	for _, re := range used[1:] {
		if own, ok := find(re, msg); ok {
			return own + request, request
		}
	}
	return 0, request
}

// tensorBytes returns the size of the tensor that TensorFlow could not allocate, or 0.
func tensorBytes(msg string) int64 {
	m := shapeRe().FindStringSubmatch(msg)
	if m == nil {
		return 0
	}
	n := float64(widths[m[2]])
	for _, side := range strings.Split(m[1], ",") {
		v, err := strconv.ParseFloat(side, 64)
		if err != nil {
			return 0
		}
		n *= v
	}
	if n > maxMemory {
		return 0
	}
	return int64(n)
}

// widths contains the bytes per element of TensorFlow's types.
var widths = map[string]int{
	"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "bool": 1, "complex64": 8,
}

func find(re func() *regexp.Regexp, msg string) (int64, bool) {
	m := re().FindStringSubmatch(msg)
	if m == nil {
		return 0, false
	}
	n := bytesOf(m[1], m[2])
	return n, n > 0
}

// bytesOf returns an amount in bytes, at most maxMemory, or 0 if it is no number.
func bytesOf(number, name string) int64 {
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(number, ".,"), ",", ""), 64)
	if err != nil {
		return 0
	}
	n *= unit[name[0]]
	if n < 0 || math.IsNaN(n) {
		return 0
	}
	return int64(math.Round(min(n, maxMemory)))
}

var unit = map[byte]float64{'b': 1, 'B': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}

// maxMemory is more bytes than any machine has.
const maxMemory = 1 << 50
