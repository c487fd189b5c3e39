// Package simgpu is a simulated GPU server: GPUs that exist only in this process, with
// real containers as their users. It implements [gpu.Source].
//
// Tasks reach it through the unix socket "gpu.sock" in a folder that is mounted into
// their containers. Both sides send one JSON object per line (package wire); package
// client is the tasks' side.
//
//	-> {"op":"hello","version":1,"task":17,"attempt":1,"gpus":["GPU-..."],
//	    "loads":[{"smact":0.7,"smocc":0.3,"drama":0.4,"step":0.09}],"holds":{"GPU-...":4123000000}}
//	<- {"op":"welcome","gpus":[{"uuid":"GPU-...","index":0,"model":"...","total":42949672960}]}
//	<- {"op":"pace","pace":480.5,"speed":600}
//	-> {"op":"alloc","id":1,"gpu":"GPU-...","bytes":1073741824}
//	<- {"op":"ok","id":1}         or
//	<- {"op":"oom","id":1,"total":...,"free":...,"held":...}
//	-> {"op":"free","id":2,"gpu":"GPU-...","bytes":...}      answered by ok
//	-> {"op":"loads","loads":[{}]}                           not answered
//	<- {"op":"state","id":1,"state":2}                       a call of the driver
//	-> {"op":"done","id":1}
//	<- {"op":"error","message":"..."}                        then it hangs up
//
// A pace, the speed of the task, is sent after welcome and whenever it changes: when a
// neighbour starts, ends or changes its load, and when the speed of simulated time
// changes. It is the speed of simulated time x the GPU's speed relative to an A100 x the
// interference model's rate ([sim.Speeds]). A task on several GPUs has the pace of the
// slowest. Paces in quick succession are merged.
//
// The end of a connection frees its client's memory. But the death of a daemon must not
// harm tasks. A client continues at its last pace, reconnects, and declares its memory in
// its hello. The server accepts that, even if it adds up to more than the GPU has. The
// server refuses only allocs. A server that finds its predecessor's socket answers no
// alloc for two seconds; by then every task that outlived the predecessor has declared
// its memory.
//
// A process can be suspended, with all its connections, with the checkpoint functions of
// NVIDIA's driver, as called by package suspend ([Server.Driver]). Its states are the
// driver's: running, locked (1), checkpointed (2). A locked client does not train, and
// its requests wait; a checkpointed one has nothing on the GPU. A client repeats its last
// state in its hello, so the next daemon knows it. Copying takes the time in the server's
// description, in simulated time. Copies do not slow each other.
//
// A connection gets a bounded queue and a deadline for every write, so a client that does
// not read loses its connection and delays nobody. An invalid line ends only its own
// connection.
//
// Activity and power follow the measurements of the workload profiles; see activity.go.
// Energy and interval means are over simulated time.
package simgpu
