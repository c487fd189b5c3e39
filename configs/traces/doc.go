// Package traces reads lists of task submissions, for carma replay and for load
// on a daemon.
//
// A trace is YAML (schema carma/trace/v1):
//
//	schema: carma/trace/v1
//	name: philly-t1-60
//	description: 60 tasks, mixed
//	source: where it comes from
//	campaign: v2                # which measurements of the workloads; v2 if left out
//	tasks:
//	  - {at: 0, workload: resnet50-imagenet-bs64}
//	  - {at: 3m1s, workload: vgg2, gpus: 1, name: mine, user: ann, priority: high, mem: 12G}
//
// at is seconds or a duration since the start of the trace. workload is a name or
// alias of package workloads. The rest is optional: gpus (default: the
// workload's), name, user, priority (low, normal, high) and mem (memory that the
// submitter declares, per GPU).
//
// Or it is CSV with a header line, with arrival_s for at:
//
//	arrival_s,workload,gpus,name,user,priority,mem
//
// Only the first two columns are required; the order is free. For the tables of
// the original's traces, task is another name of workload, and the columns model,
// dataset, batch_size and epochs are ignored.
//
// Tasks may be in any order: they are sorted by arrival. Tasks that arrive at the
// same time stay in the order of the file.
//
// Traces can also be generated: generated-SEED, or generated-SEEDxTASKS, has 60
// or that many tasks, with the original's gaps and mix of workloads. A seed gives
// the same trace as long as the shipped workloads do not change.
//
// An error is one line: the file, the line, the fault, the remedy.
package traces
