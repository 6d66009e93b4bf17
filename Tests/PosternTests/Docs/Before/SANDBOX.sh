# The page's own sandboxes go on until they are ended; the other blocks are typed beside one. Blocks for Apple's double name its address.
unset -f postern
case "$first" in
"postern sandbox"*) ;;
"J='Content-Type: application/json' URL="*)
    postern sandbox --as apple >/tmp/sandbox.log 2>&1 &
    until_true answers http://127.0.0.1:8899/readyz
    ;;
*) sandbox ;;
esac
