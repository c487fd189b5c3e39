package endtext

import (
	"strings"

	"carma/internal/lazyregexp"
)

// A message is about GPU memory if it has words for exhausted memory, words for a GPU,
// and no words for other memory. It is about unnamed memory if it has only the first.

// exhausted matches words for a failed allocation of memory.
var exhausted = lazyregexp.New(`(?i)` +
	`\bout of (?:[\w/()-]+ ){0,4}(?:memory|vram)\b|(?:^|[^a-z])out[_-]of[_-](?:(?:gpu|device|video|cuda|graphics|local|global|free)[_-])?(?:memory|vram)\b|OutOf(?:GPU|Device|Video|Host)?Memory|` +
	`\b(?:run|runs|ran|running) out of (?:[\w/()-]+ ){0,3}(?:memory|vram)|` +
	`\b(?:not enough|insufficient|no (?:free|available|more)|inadequate|too little|low on|lack of)(?: [\w/()-]+){0,4} (?:memory|vram)\b|\binsufficientmemory|` +
	`\b(?:memory|vram) (?:is |was )?(?:exhausted|insufficient|not enough|too low|allocation (?:error|failed|failure)|not available to allocate)|\bexhausted (?:[\w/-]+ ){0,3}memory|` +
	`\b(?:fail(?:ed|ure|s)?|unable|cannot|can't|couldn't|could not|error)(?: (?:in|while|when|to|during|trying|on))* (?:re)?alloc\w*\b.*(?:memory|bytes|\b[KMGT]i?B\b|buffer|tensor|block|workspace|arena|pool|cache|array|on device|on (?:the )?gpu)|` +
	`alloc\w* (?:\w+ ){0,3}memory (?:\w+ ){0,2}(?:failed|failure)\b|alloc\w*\b[^.;:="()]{0,80}\bfail(?:ed|ure|s)?\b.*(?:memory|bytes|\b[KMGT]i?B\b|buffer|tensor|block|workspace|arena|pool|cache)|` +
	`\bfailed to (?:\w+ )?(?:cuda|gpu|hip|device) (?:m|c|re)?alloc|ALLOC(?:ATION)?_FAILED|\bbad_?alloc\b|MemoryAllocation|MEM(?:ORY)?_(?:OBJECT_)?ALLOC\w*FAIL|` +
	`RESOURCE_?EXHAUSTED|` +
	`\b(?:exceed(?:s|ed|ing)?|larger than|greater than|more than)(?: [^ ]+){0,6} (?:(?:gpu|device|video|available|free|allowed|allocated|total|global) )+(?:memory|vram)\b|` +
	`\bOOM (?:error|occurred|detected|killed|while|when|during|on|in)\b|\b(?:gpu|cuda|vram) OOM\b|\bMemoryError\b`)

// onGPU matches words for a GPU, its libraries and its memory.
var onGPU = lazyregexp.New(`(?i)cuda|gpu|vram|\bcu(?:blas|dnn|fft|solver|sparse|mem|py|df|ml)|\bcu[A-Z]\w+|nccl|rccl|\bnvml|\bhip[A-Z_]|\bhip\b|rocm|miopen|\bxpu\b|\bnpu\b|nvenc|nvdec|cuvid|nvjpeg|opencl|\bCL_|\bcl(?:Enqueue|Create)|` +
	`vulkan|\bvk[A-Z_]|VK_ERROR|OutOfDevice|out_of_device|device out of memory|device memory|optix|tensorrt|\btrt\b|triton error|kv[ _-]?cache|cache blocks|\bdevice:? ?\d|\bon device\b|\bthe device\b|graphics (?:card|memory)|video (?:card|memory)|\bdevice \[\d|MPS backend|mindspore|Ascend|bfc_allocator|GPU_\d|torch\.OutOfMemoryError|\bthrust::|\bRMM\b|\brmm\b`)

// offGPU matches words for memory other than a GPU's, and for other resources.
var offGPU = lazyregexp.New(`(?i)DefaultCPUAllocator|\bcpu\b|CPU_?Alloc|\[?host\]? memory|system memory|physical memory|\bheap\b|shared memory|/dev/shm|\bdisk\b|space left|swap|pinned|page-?locked|inode|\bmmap|` +
	`\bfork\b|\bthreads?\b|Killed process|oom[-_ ]kill|quota|java heap|GC overhead|java\.lang\.OutOfMemoryError|\bENOMEM\b|errno 12\b|\bRAM\b|StatusCode\.|\bout of resources?: |\bhardware limit\b|buffer overflow|larger than max|too many open|hugepage|file descriptor`)

// gpuFirst matches words that name a GPU's memory even if other memory is named too.
var gpuFirst = lazyregexp.New(`(?i)\bout of (?:gpu|cuda|device|video)\b`)

// statistic matches text that follows such words in a table of settings or counts.
var statistic = lazyregexp.New(`(?i)^\w*\W{0,3}(?:count|counter|errors|events|total|threshold|policy|mode|handling)\b|^\w*"?\s*[:=]\s*"?(?:\d+|true|false|on|off|none|null|yes|no)\b`)

// claims reports whether a text has words for exhausted memory.
func claims(text string) bool { return exhausted().MatchString(text) }

// NamesMemory reports whether a line of output has words for exhausted memory. It is
// cheap for lines without them.
func NamesMemory(line []byte) bool {
	text := string(line)
	return mayClaim(text) && claims(text)
}

// mayClaim reports cheaply whether a line of output can have such words.
func mayClaim(line string) bool {
	lower := strings.ToLower(line)
	for _, w := range []string{"memory", "alloc", "oom", "exhausted", "vram"} {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

var (
	// prose matches words of sentences that people read or write, as in an answer of a
	// language model, a hint or a documentation. A claim after such words is a quotation.
	prose = lazyregexp.New(`(?i)\b(?:you|your|we|users?|people|someone|if|when(?:ever)?|unless|how|why|answer\w*|questions?|prompt|says?|said|repl(?:y|ied)|response|explain\w*|example|e\.g|avoids?|prevents?|in case of|hints?|tips?|note|check(?:s|ing)? for|guards?|handl(?:es|ing)|may|might|would|should|means|typically|often|usually|symptoms?|title|issue|test_\w+|expected|asserts?|catch(?:es)?|previous(?:ly)?|last run|earlier)\b`)
	// whileDoing matches the words before the operation during which a program failed.
	whileDoing = lazyregexp.New(`(?i)\b(?:error|failure|exception|failed) (?:when|while)\b`)
	// advice matches the words among these that count in an exception's message too.
	advice = lazyregexp.New(`(?i)\b(?:if|whenever|avoids?|prevents?|in case of|hints?|tips?|check(?:s|ing)? for|guards?|handlers?|expected|should)\b`)
	// typeName matches text before the name of an exception's type that is only mentioned.
	typeName = lazyregexp.New(`<class '[\w.]*$|\b(?:raises|isinstance|issubclass|assertRaises\w*)\b[^'"]*$|\bexcept \(?[\w., ]*$|\btest_\w*$`)
	// relayed matches text before the words of another program, received with an HTTP
	// status, or of a commit.
	relayed = lazyregexp.New(`\b(?i:error code|status(?:[ _]code)?|http(?:/[\d.]+)?)[ :=]*[45]\d\d\b|\b[0-9a-f]{7,40}\b.{0,30}\b(?:fix|feat|docs|chore|refactor|perf)(?:\([\w/-]+\))?!?: `)
	// unraised matches text after words that claim nothing: a test's words for an exception
	// that was not raised, a question mark, or a name in place of an amount.
	unraised = lazyregexp.New(`\b(?:not raised|DID NOT RAISE)\b|^\?|\ballocate <\w+>`)
	// listed matches a line that is an entry of a list of names.
	listed = lazyregexp.New(`^- [A-Za-z_."' ]{0,60}$`)
	// role matches the beginning of a turn in a dialogue.
	role = lazyregexp.New(`^(?i:\W{0,4}(?:user|assistant|human|system|bot|prompt|response|question|answer|q|a)\b *\d*\W{0,3}:)`)
	// handled matches a line that reports that the program continued.
	handled = lazyregexp.New(`(?i)\b(?:skipp(?:ed|ing)|retry(?:ing)?|retries|retried|caught|recover(?:ed|ing)|ignor(?:ed|ing)|reduced|halved|falling back|fall back|fallback|not a failure|will try|trying (?:again|with)|continu(?:e|es|ing)|resum(?:e|ing)|default batch)\b|, ok$`)
	// unhandled matches similar words that mean that the program did not continue, as in
	// "could not split inputs and retry".
	unhandled = lazyregexp.New(`(?i)\b(?:could not|couldn't|cannot|can't|unable to|failed to|will not|won't|not|gave up|giving up)\b[^.;:]{0,40}\b(?:retry(?:ing)?|retries|recover|continue|resume|fall back)\b|\bretr(?:y|ies)\b[^.;:]{0,20}\b(?:exhausted|exceeded|failed)\b`)
)

// backticks matches code marks in Markdown and reStructuredText.
var backticks = lazyregexp.New("`+")

// quoted reports whether the words before a claim make it a quotation: prose, or a
// quotation mark that is still open where the claim begins. In an error message only
// advice does so.
func quoted(before string, isError bool) bool {
	if typeName().MatchString(before) || relayed().MatchString(before) {
		return true
	}
	if isError {
		return advice().MatchString(before)
	}
	if prose().MatchString(whileDoing().ReplaceAllString(before, " ")) {
		return true
	}
	before = backticks().ReplaceAllString(before, "`")
	for _, mark := range []string{`"`, "`", "“"} {
		if strings.Count(before, mark)%2 == 1 {
			return true
		}
	}
	return false
}
