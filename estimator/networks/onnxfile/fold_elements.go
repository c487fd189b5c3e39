package onnxfile

import (
	"math"
	"slices"
)

// arithmetic computes an operator on two integers; not ok: undefined.
func arithmetic(op string, a, b int64) (r int64, ok bool) {
	switch op {
	case "Add":
		return a + b, true
	case "Sub":
		return a - b, true
	case "Mul":
		return a * b, true
	case "Div":
		if b == 0 || a == math.MinInt64 {
			return 0, false
		}
		return a / b, true
	case "Mod":
		if b == 0 || a == math.MinInt64 {
			return 0, false
		}
		if r = a % b; r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r, true
	case "Min":
		return min(a, b), true
	case "Max":
		return max(a, b), true
	}
	yes, ok := compare(op, a, b)
	if yes {
		return 1, ok
	}
	return 0, ok
}

func compare(op string, a, b int64) (yes, ok bool) {
	switch op {
	case "Equal":
		return a == b, true
	case "Less":
		return a < b, true
	case "Greater":
		return a > b, true
	case "LessOrEqual":
		return a <= b, true
	case "GreaterOrEqual":
		return a >= b, true
	case "And":
		return a != 0 && b != 0, true
	case "Or":
		return a != 0 || b != 0, true
	}
	return false, false
}

// learnElements computes an output element by element.
func (n *network) learnElements(c *call, out *value) {
	count := int(product(out.shape))
	a := n.arg(c, 0)
	if len(c.in) == 1 && a != nil {
		n.learnOne(c, a)
		return
	}
	b := n.arg(c, 1)
	if len(c.in) != 2 || a == nil || b == nil {
		return
	}
	if len(a.floats) == 1 && len(b.floats) == 1 && count == 1 {
		if r, ok := decimals(c.op, a.floats[0], b.floats[0]); ok {
			n.learn(c, nil, []float64{r})
		}
		return
	}
	list := make([]int64, count)
	for i := range list {
		x, okA := spread(a, i, count)
		y, okB := spread(b, i, count)
		r, ok := arithmetic(c.op, x, y)
		if !okA || !okB || !ok {
			return
		}
		list[i] = r
	}
	n.learn(c, list, nil)
}

func decimals(op string, a, b float64) (float64, bool) {
	switch op {
	case "Add":
		return a + b, true
	case "Sub":
		return a - b, true
	case "Mul":
		return a * b, true
	case "Div":
		return a / b, b != 0
	case "Pow":
		return math.Pow(a, b), true
	}
	return 0, false
}

func (n *network) learnOne(c *call, a *value) {
	ints, floats := slices.Clone(a.ints), slices.Clone(a.floats)
	switch c.op {
	case "Neg":
		for i := range ints {
			ints[i] = -ints[i]
		}
		for i := range floats {
			floats[i] = -floats[i]
		}
	case "Sqrt", "Floor", "Ceil":
		f := map[string]func(float64) float64{"Sqrt": math.Sqrt, "Floor": math.Floor, "Ceil": math.Ceil}[c.op]
		for i := range floats {
			floats[i] = f(floats[i])
		}
	default:
		return
	}
	n.learn(c, ints, floats)
}
