// Package workloads is the catalogue of measured training tasks. Carma's simulated GPUs,
// replays and estimators use it. The tasks come from the original CARMA and its
// follow-ups, and were measured without co-location on an A100 40 GB.
//
// There is one file per model. It has this form (schema carma/workload/v1; memory in MiB,
// activity 0 to 1, all figures per GPU):
//
//	schema: carma/workload/v1
//	model: resnet50
//	spellings: [...]              # further names of the model, for ByModel
//	profiles:
//	  - name: resnet50-imagenet-bs64
//	    aliases: [resnet2]        # task names of the original
//	    dataset: imagenet
//	    batch_size: 64
//	    epochs: 1
//	    gpus: 1
//	    weight_class: medium/heavy
//	    activity: {smact: 0.69, smact_p95: 0.73, smocc: 0.35, drama: 0.47}
//	    campaigns:                # whole task alone; v2 always, v1 for most
//	      v1: {minutes: 35.5, memory_mib: 8536, source: "..."}
//	      v2: {minutes: 32.52, memory_mib: 7106, source: "..."}
//	    estimates_mib: {horus: 14910, faketensor: 5337, gpumemnet: 16000}
//	    solo: {id: ..., end_to_end_s: 1951, train_loop_s: 1947, peak_mib: 7118, span: full_run}
//	    per_gpu:                  # where the GPUs of one task differ
//	      - {peak_mib: 28330, smact: 0.84, smocc: 0.27, drama: 0.21}
//	    notes: [...]              # contradictions between the sources
//
// A missing figure was not measured. A missing estimate was not given: the original
// writes 40000 for it. The two campaigns differ in software and in settings (v1 has about
// 1.2 GiB more memory outside the framework's allocator). Never mix them in one
// comparison. convert.go makes the files.
//
// The package's tests check every profile. A broken embedded file is a bug and panics at
// first use.
package workloads
