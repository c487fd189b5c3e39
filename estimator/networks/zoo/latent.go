package zoo

import "carma/configs/models"

// Latent is attention whose queries, keys and values come from narrow tokens
// (multi-head latent attention, DeepSeek V2).
type Latent struct {
	Query, KeyValue int64 // width of the narrow tokens; Query 0: none
	Nope, Rope      int64 // numbers of a head's key without and with a position
	Value           int64 // numbers of a head's value
}

// latentAttention projects down, norms, and projects up for each head. Keys are put
// together from a part by head and a part that all heads share.
func (d *Block) latentAttention(g *graph, x int) int {
	l := d.Latent
	tokens := g.shape(x)[0]
	key := l.Nope + l.Rope
	q := x
	if l.Query > 0 {
		q = g.rmsNorm("q_a_layernorm", g.linear("q_a_proj", x, l.Query, d.BiasQKV))
		q = g.adapted("q_b_proj", q, d.Heads*key, false)
	} else {
		q = g.adapted("q_proj", q, d.Heads*key, false)
	}
	narrow := g.linear("kv_a_proj_with_mqa", x, l.KeyValue+l.Rope, d.BiasQKV)
	c := g.rmsNorm("kv_a_layernorm", g.view("compressed", narrow, tokens, l.KeyValue))
	both := g.adapted("kv_b_proj", c, d.Heads*(l.Nope+l.Value), false)
	rope := g.rotate("k_rope", g.view("rope", narrow, tokens, l.Rope))
	k := g.op(models.Concat, "key", []int64{tokens, d.Heads * key}, g.view("nope", both, tokens, d.Heads*l.Nope), rope)
	q = g.copyOf("query", g.rotate("q_rope", q), tokens, d.Heads*key)
	v := g.view("value", both, tokens, d.Heads*l.Value)
	a := g.attend("sdpa", q, k, v, d.Heads)
	g.layers[a].Out = []int64{tokens, d.Heads * l.Value}
	return g.linear("o_proj", a, d.Width, d.BiasOut)
}
