package transformer

import (
	"carma/configs/models"
	"carma/estimator/networks/graph"
)

// Latent is attention whose queries, keys and values are projected from narrow tokens
// (multi-head latent attention, DeepSeek V2).
type Latent struct {
	Query, KeyValue int64 // width of the narrow tokens; Query 0 means no narrow queries
	Nope, Rope      int64 // numbers of a head's key without and with a position
	Value           int64 // numbers of a head's value
}

// latentAttention projects down, norms, and projects up for each head. Keys are
// concatenated from a part per head and a part that all heads share.
func (d *Block) latentAttention(g *graph.Graph, x int) int {
	l := d.Latent
	tokens := g.Shape(x)[0]
	key := l.Nope + l.Rope
	q := x
	if l.Query > 0 {
		q = rmsNorm(g, "q_a_layernorm", g.Linear("q_a_proj", x, l.Query, d.BiasQKV))
		q = g.Adapted("q_b_proj", q, d.Heads*key, false)
	} else {
		q = g.Adapted("q_proj", q, d.Heads*key, false)
	}
	narrow := g.Linear("kv_a_proj_with_mqa", x, l.KeyValue+l.Rope, d.BiasQKV)
	c := rmsNorm(g, "kv_a_layernorm", g.View("compressed", narrow, tokens, l.KeyValue))
	both := g.Adapted("kv_b_proj", c, d.Heads*(l.Nope+l.Value), false)
	rope := rotate(g, "k_rope", g.View("rope", narrow, tokens, l.Rope))
	k := g.Op(models.Concat, "key", []int64{tokens, d.Heads * key}, g.View("nope", both, tokens, d.Heads*l.Nope), rope)
	q = g.CopyOf("query", rotate(g, "q_rope", q), tokens, d.Heads*key)
	v := g.View("value", both, tokens, d.Heads*l.Value)
	a := g.Attend("sdpa", q, k, v, d.Heads)
	g.Layers[a].Out = []int64{tokens, d.Heads * l.Value}
	return g.Linear("o_proj", a, d.Width, d.BiasOut)
}
