# The numbers take an hour and a release build: whether they can be asked for is all that is looked at.
mkdir -p .build/release
for bench in MailBench DecisionBench SignInBench StoreBench; do
    cat >.build/release/$bench <<'BENCH'
#!/usr/bin/env bash
for word in "$@"; do
    [[ $word == --* ]] || continue
    # --tail-messages is the property tailMessages.
    property=$(sed -E 's/-(.)/\U\1/g' <<<"${word#--}")
    sed -n '/^struct Options/,/^}/p' "$SOURCES/$(basename "$0")/main.swift" | grep -qE "\bvar $property\b" ||
        { echo "no option $word" >&2; exit 64; }
done
BENCH
    chmod +x .build/release/$bench
done
export SOURCES=$repository/Benchmarks
