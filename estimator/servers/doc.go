// Package servers recognises programs that take a share of a GPU by design, whatever
// they would need: inference servers (vLLM, SGLang, TGI, Triton, llama.cpp), and
// frameworks that reserve memory at their start (JAX, TensorFlow). It says how large
// that share is, and how it can be set.
//
// A program is recognised by the repository of its image, by the words of its command, or
// by its variables. The rules are a table (table.go). A guess may be wrong, so callers
// must let users switch it off.
//
// The package is pure: it reads no image, no file and no environment.
package servers
