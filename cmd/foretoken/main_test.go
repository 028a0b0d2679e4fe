package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
	"github.com/foretoken/foretoken/internal/testmodel"
)

// The test binary is the foretoken command of the scripts, and of tests that
// run it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"foretoken": main})
}

// TestScripts runs testdata/script. Each script finds tiny models, a store with
// the default model in it, and a server that has one more, but no network.
func TestScripts(t *testing.T) {
	models := t.TempDir()
	for _, family := range []string{"llama", "qwen3", "deepseek_v32", "deepseek_v4"} {
		dir := filepath.Join(models, family)
		if err := errors.Join(os.Mkdir(dir, 0o755), testmodel.Write(dir, testmodel.Family(family))); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(models)))
	mux.HandleFunc("/cut/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5000")
		w.Write(append([]byte("GGUF"), make([]byte, 996)...))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.Handle("/v1/", openAI())
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	command, err := exec.LookPath("foretoken")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Vars = append(env.Vars,
				"HOME="+home,
				"FORETOKEN_HOME="+filepath.Join(home, "foretoken"),
				"HF_HOME="+filepath.Join(home, "huggingface"),
				"HF_HUB_OFFLINE=1",
				"MODELS="+models,
				"GREETING=Greet:\n\nhello world",
				"SITE="+site.URL,
				"COMMANDS="+filepath.Dir(command),
			)
			return store(filepath.Join(home, "foretoken"), pull.DefaultModel, filepath.Join(models, "llama", "model.gguf"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "size": size, "figures": figures},
	})
}

// store puts a file into a store as the model of that name.
func store(home, name, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(name))
	dir := filepath.Join(home, "models", strings.ReplaceAll(name, ":", "-")+"-"+hex.EncodeToString(sum[:6]))
	manifest, err := json.Marshal(map[string]any{
		"name": name, "source": "pip:tiny==1.0", "licence": "Apache-2.0", "pulled": "2026-01-02T03:04:05Z",
		"files": []map[string]any{{"name": "tiny.gguf", "size": len(data)}},
	})
	return errors.Join(err, os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "tiny.gguf"), data, 0o644),
		os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o644))
}

// exits runs a command and checks its exit code: exits CODE COMMAND ARGS….
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// size checks the size of a file: size BYTES FILE.
func size(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: size bytes file")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprint(info.Size()); got != args[0] {
		ts.Fatalf("%s has %s bytes, want %s", args[1], got, args[0])
	}
}

// Every flag can be set by an environment variable, and no two flags that mean
// different things by the same one.
func TestEnvironmentVariables(t *testing.T) {
	flags := map[string]*kong.Flag{}
	for _, verb := range newParser(&verbs{}).Model.Leaves(false) {
		for _, flag := range verb.Flags {
			if flag.Name == "help" {
				continue
			}
			if len(flag.Envs) != 1 || !strings.HasPrefix(flag.Envs[0], "FORETOKEN_") {
				t.Errorf("%s --%s: environment variables %q", verb.Path(), flag.Name, flag.Envs)
				continue
			}
			env := flag.Envs[0]
			if env == "FORETOKEN_HOME" || env == "FORETOKEN_GOLDEN" || env == "FORETOKEN_DATA" {
				t.Errorf("%s --%s: %s means something else", verb.Path(), flag.Name, env)
			}
			// All verbs that run models have the flags that say how.
			shared := flag.Group != nil && (flag.Group.Key == "engine" || flag.Group.Key == "speculation")
			if other := flags[env]; other != nil && !(shared && other.Name == flag.Name && other.Enum == flag.Enum) {
				t.Errorf("%s --%s: %s is used twice", verb.Path(), flag.Name, env)
			}
			flags[env] = flag
		}
	}
	if len(flags) < 30 {
		t.Errorf("only %d flags were checked", len(flags))
	}
}

func TestNearest(t *testing.T) {
	names := []string{"smollm2:135m", "gemma3:270m", "hf:org/some-model"}
	for word, want := range map[string]string{
		"smollm2":          "smollm2:135m", // begins it
		"smolm2:135m":      "smollm2:135m",
		"gemma3:27m":       "gemma3:270m",
		"gemma":            "gemma3:270m",
		"hf:org/sme-model": "hf:org/some-model",
		"llama":            "",
		"":                 "",
		"sm":               "", // too short to mean one
		"gemma4:1b":        "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("nearest(%q) is %q, want %q", word, got, want)
		}
	}
}
