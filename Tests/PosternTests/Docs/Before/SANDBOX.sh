# The page's own sandbox goes on until it is ended; the other blocks are typed beside one.
unset -f postern
case "$first" in
"postern sandbox"*) ;;
*)
    postern sandbox --as apple >/tmp/sandbox.log 2>&1 &
    until_true answers http://127.0.0.1:8899/readyz
    ;;
esac
