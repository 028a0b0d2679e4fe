package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// smol is a published model: its tokenizer, its chat template and its text are
// what users have.
const smol = "smollm2:135m"

// program is the path of foretoken, built from the working tree.
var program string

// deadline bounds what other processes are waited for. It ends a test that
// hangs and decides nothing else.
const deadline = 2 * time.Minute

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "foretoken-e2e-")
		if err == nil {
			defer os.RemoveAll(dir)
			err = prepare(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		return m.Run()
	}())
}

// prepare builds foretoken and fetches the model. FORETOKEN_REALMODEL_HOME keeps
// the download for other runs, and for the real-model suite.
func prepare(dir string) error {
	home := os.Getenv("FORETOKEN_REALMODEL_HOME")
	if home == "" {
		home = dir
	}
	home, err := filepath.Abs(filepath.Join(home, "smollm2-135m"))
	if err != nil {
		return err
	}
	os.Setenv("FORETOKEN_HOME", filepath.Join(home, "foretoken"))
	os.Setenv("HF_HOME", filepath.Join(home, "huggingface"))
	os.Setenv("NO_PROXY", "127.0.0.1") // clients read it
	os.Unsetenv("OPENAI_API_KEY")
	os.Unsetenv("OPENAI_BASE_URL")

	program = filepath.Join(dir, "foretoken")
	build := exec.Command("go", "build", "-o", program, "./cmd/foretoken")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/foretoken: %w\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, program, "pull", smol).CombinedOutput(); err != nil {
		return fmt.Errorf("foretoken pull %s: %w\n%s", smol, err, out)
	}
	return nil
}
