// This file is empty. It lets the package declare functions without a body (runtime.go).
