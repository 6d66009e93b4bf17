case "$first" in
"apt install"*) mail_system; package ;;
"postconf -e"*) installation; own_user; mail_system ;;
"postern keys dkim publish" | "postern team add juice"*) installation ;;
"postern team add try"*)
    installation
    # What is promised: a message to oneself comes back, and so does the answer.
    afterwards() {
        local address reverse answer
        address=$(command postern address issue try you)
        letter() { printf 'From: <you@home.example>\r\nTo: <%s>\r\nSubject: Hello\r\nMessage-ID: <%s@home.example>\r\n\r\nHello\r\n' "$1" "$2"; }
        explained() { letter "$1" "$2" | command postern explain --mail-from you@home.example --rcpt "$1" --ip 192.0.2.20 --helo mx.home.example --json; }
        answer=$(explained "$address" 1)
        [ "$(jq -r '.action + " " + .rcpts[0]' <<<"$answer")" = "relay you@home.example" ] || { echo "$answer"; return 1; }
        reverse=$(jq -r .message_base64 <<<"$answer" | base64 -d | sed -n 's/^From:.*<\(.*\)>.*/\1/p')
        answer=$(explained "$reverse" 2)
        [ "$(jq -r '.action + " " + .rcpts[0]' <<<"$answer")" = "relay you@home.example" ] || { echo "$answer"; return 1; }
    }
    ;;
"postern sandbox"*) ;;
"curl -sS \$URL"* | "curl -sS -X PUT \$URL"* | 'N=$(curl'*) sandbox ;;
"postern user add jane"*) installation; command postern team add juice --name Juice ;;
*) installation; juice; service ;;
esac
