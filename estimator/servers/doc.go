// Package servers recognises programs that take a fixed share of a GPU's memory, even if
// they need less: inference servers (vLLM, SGLang, TGI, Triton, llama.cpp), and
// frameworks that reserve memory when they start (JAX, TensorFlow). It returns the share
// and the setting for it.
//
// A program is recognised by the repository of its image, by the words of its command, or
// by its environment variables. The rules are a table (table.go). A guess may be wrong,
// so callers must let users disable recognition.
//
// The package is pure: it reads no image, no file and no environment.
package servers
