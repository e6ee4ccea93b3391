// An assembly file lets this package declare functions without a body (now.go).
