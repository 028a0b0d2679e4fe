package kernel

// The assembly is generated; gen is a module of its own, which pins avo.
//go:generate go run -C gen ./matmul -out ../matmul_amd64.s -stubs ../matmul_stubs_amd64.go -pkg kernel
//go:generate go run -C gen ./matmul/avx2 -out ../matmul_avx2_amd64.s -stubs ../matmul_avx2_stubs_amd64.go -pkg kernel
//go:generate go run -C gen ./rows -out ../rows_amd64.s -stubs ../rows_stubs_amd64.go -pkg kernel
//go:generate go run -C gen ./attention -out ../attention_amd64.s -stubs ../attention_stubs_amd64.go -pkg kernel
//go:generate go run -C gen ./indexer -out ../indexer_amd64.s -stubs ../indexer_stubs_amd64.go -pkg kernel
//go:generate go run -C gen ./arm64/matmul -out ../matmul_arm64.s -stubs ../matmul_stubs_arm64.go -pkg kernel
//go:generate go run -C gen ./arm64/rows -out ../rows_arm64.s -stubs ../rows_stubs_arm64.go -pkg kernel
//go:generate go run -C gen ./arm64/attention -out ../attention_arm64.s -stubs ../attention_stubs_arm64.go -pkg kernel
//go:generate go run -C gen ./arm64/indexer -out ../indexer_arm64.s -stubs ../indexer_stubs_arm64.go -pkg kernel
