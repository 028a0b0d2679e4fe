package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The source of llama.cpp comes in the sdist of llama-cpp-python (both MIT),
// which is fetched from PyPI and never shipped.
const (
	release = "0.3.36"
	sdist   = "llama_cpp_python-" + release + ".tar.gz"
	sum     = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
	inside  = "llama_cpp_python-" + release + "/vendor/llama.cpp/"
)

// verifySource is the driver for what llama-bench does not measure.
//
//go:embed driver/verify.c
var verifySource []byte

// A setting is a way to run llama.cpp that is the faster one somewhere: the
// better one counts for each figure. README.md says what else was tried.
type setting struct {
	name  string
	build string // directory
	cmake []string
}

// settings begin with what llama.cpp is by itself.
var settings = []setting{
	{"OpenMP", "build-openmp", nil},
	{"own threads", "build-threads", []string{"-DGGML_OPENMP=OFF"}},
}

// A llama is a directory with llama.cpp's source and builds, a directory for
// each release, and with models.
type llama struct{ dir string }

func (l llama) source() string                     { return filepath.Join(l.dir, release, "llama.cpp") }
func (l llama) build(s setting) string             { return filepath.Join(l.dir, release, s.build) }
func (l llama) tool(s setting, name string) string { return filepath.Join(l.build(s), "bin", name) }
func (l llama) models() string                     { return filepath.Join(l.dir, "models") }
func (l llama) model(name string) string           { return filepath.Join(l.models(), name+".gguf") }

// The tools of a build: three of llama.cpp's, and verifySource.
const (
	benchTool    = "llama-bench"
	quantizeTool = "llama-quantize"
	serverTool   = "llama-server"
	verifyTool   = "foretoken-verify"
)

// built says what to do when a build is missing.
func (l llama) built() error {
	for _, s := range settings {
		_, err1 := os.Stat(l.tool(s, serverTool)) // which earlier builds lack
		_, err2 := os.Stat(l.tool(s, verifyTool)) // the last to be built
		if errors.Join(err1, err2) != nil {
			return fmt.Errorf("%s: llama.cpp is not built: go run ./bench/peer build", filepath.Join(l.dir, release))
		}
	}
	return nil
}

func buildCommand(ctx context.Context, args []string) error {
	f, dir := flags("build")
	archive := f.String("sdist", "", "a copy of "+sdist+" instead of PyPI's")
	if err := parse(f, args); err != nil {
		return err
	}
	l := llama{*dir}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	if *archive == "" {
		*archive = filepath.Join(l.dir, sdist)
		if check(*archive) != nil {
			if err := l.download(ctx); err != nil {
				return err
			}
		}
	}
	if err := check(*archive); err != nil {
		return err
	}
	if err := extract(*archive, l.source()); err != nil {
		return err
	}
	for _, s := range settings {
		if err := l.compile(ctx, s); err != nil {
			return err
		}
		fmt.Println(filepath.Join(l.build(s), "bin"))
	}
	return nil
}

// download asks pip for the sdist. pip checks the hash before it runs
// anything of it.
func (l llama) download(ctx context.Context) error {
	requirements := filepath.Join(l.dir, "requirements.txt")
	line := fmt.Sprintf("llama-cpp-python==%s --hash=sha256:%s\n", release, sum)
	if err := os.WriteFile(requirements, []byte(line), 0o644); err != nil {
		return err
	}
	return do(ctx, l.dir, "python3", "-m", "pip", "download", "--no-deps", "--no-binary", "llama-cpp-python",
		"--require-hashes", "--dest", l.dir, "-r", requirements)
}

// check compares the hash of the sdist.
func check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("%s: SHA-256 is %s, expected %s", path, got, sum)
	}
	return nil
}

// extract writes what the sdist has of llama.cpp to dir, unless it is there.
func extract(archive, dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		name, ok := strings.CutPrefix(h.Name, inside)
		if !ok || h.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			continue
		}
		if err := extractFile(filepath.Join(partial, name), t, h.FileInfo().Mode().Perm()); err != nil {
			return err
		}
	}
	return os.Rename(partial, dir)
}

func extractFile(path string, r io.Reader, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// compile builds for this very processor, as llama.cpp's documentation does,
// without what is not needed.
func (l llama) compile(ctx context.Context, s setting) error {
	build := l.build(s)
	configure := append([]string{
		"-S", l.source(), "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DLLAMA_OPENSSL=OFF",
		"-DLLAMA_BUILD_SERVER=ON", "-DLLAMA_USE_PREBUILT_UI=OFF",
	}, s.cmake...)
	for _, part := range []string{"TESTS", "EXAMPLES", "UI", "APP"} {
		configure = append(configure, "-DLLAMA_BUILD_"+part+"=OFF")
	}
	if err := do(ctx, l.dir, "cmake", configure...); err != nil {
		return err
	}
	if err := do(ctx, l.dir, "cmake", "--build", build, "--parallel", fmt.Sprint(runtime.NumCPU()),
		"--target", benchTool, quantizeTool, serverTool); err != nil {
		return err
	}
	source := filepath.Join(build, "verify.c")
	if err := os.WriteFile(source, verifySource, 0o644); err != nil {
		return err
	}
	bin := filepath.Join(build, "bin")
	return do(ctx, l.dir, "cc", "-O2", source, "-o", l.tool(s, verifyTool),
		"-I", filepath.Join(l.source(), "include"), "-I", filepath.Join(l.source(), "ggml", "include"),
		"-L", bin, "-lllama", "-lggml-cpu", "-lggml-base", "-Wl,-rpath,"+bin)
}
