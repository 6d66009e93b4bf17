# The double that the page starts goes on until it is ended; the other blocks are typed beside a sandbox. Those for the double name
# its address.
case "$first" in
"postern sandbox") ;;
"postern sandbox --as"*) unset -f postern ;;
"J='Content-Type: application/json' URL="*)
    command postern sandbox --as apple >/tmp/sandbox.log 2>&1 &
    until_true answers http://127.0.0.1:8899/readyz
    ;;
*) sandbox ;;
esac
