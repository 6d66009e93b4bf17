signed_by_apple() {
    openssl genrsa -out apple.pem 2048 2>/dev/null
    local octets modulus now head body
    octets=$(openssl rsa -in apple.pem -noout -modulus | cut -d= -f2)
    url() { base64 -w0 | tr '+/' '-_' | tr -d '='; }
    modulus=$(printf '%s' "$octets" | xxd -r -p | url)
    echo "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"a1\",\"use\":\"sig\",\"alg\":\"RS256\",\"n\":\"$modulus\",\"e\":\"AQAB\"}]}" >/tmp/body
    now=$(date +%s)
    head=$(printf '{"alg":"RS256","kid":"a1"}' | url)
    body=$(printf '{"iss":"https://appleid.apple.com","aud":"com.example.juice","sub":"001","iat":%d,"exp":%d}' "$now" $((now + 600)) | url)
    echo "$head.$body.$(printf '%s' "$head.$body" | openssl dgst -sha256 -sign apple.pem | url)" >token.jwt
}
# TABLE COLUMN SECONDS: as if a time had been another one.
later() {
    /usr/bin/python3 -c 'import sqlite3, sys; c = sqlite3.connect("/var/lib/postern/postern.db")
c.execute(f"UPDATE {sys.argv[1]} SET {sys.argv[2]} = {sys.argv[2]} + ?", (int(sys.argv[3]),)); c.commit()' "$@"
}
case "$first" in
"apt install"*)
    mail_system
    package
    ;;
"make release") mkdir -p .build/release && cp "$program" .build/release/postern ;;
"useradd"*) userdel postern 2>/dev/null || true ;;
"postern setup postfix"*) installation; mail_system ;;
"postern api-key issue"*)
    installation; juice
    command postern api-key issue juice --scope addresses:read >/dev/null
    replace KEY "$(command postern api-key list | cut -f1)"
    ;;
"postern keys file"*) installation; juice; service ;;
"createuser"*) postgres ;;
"systemctl stop postern")
    installation; juice; postgres
    createuser postern && createdb --owner=postern postern
    own_user
    cd /tmp
    systemctl start postern
    replace '# set database .*' 'sed -i "/^# database:/c database: postgresql://postern@db.example/postern" $POSTERN_CONFIG'
    # The relay's own user copies, as files that it opens are its own.
    postern() { runuser -u postern -- env POSTERN_CONFIG="$POSTERN_CONFIG" postern "$@"; }
    ;;
"postern keys dkim generate"*)
    installation; service
    # The names of keys are those of the month. What the page says to publish is published, and the two weeks are over.
    generated=
    postern() {
        case "$1 $2 $3" in
        "keys dkim generate")
            local names
            names=$(selectors)
            command postern keys dkim generate | tee /tmp/generated
            generated=$(selectors | grep -vxF "$names")
            record "$generated._domainkey.relay.example TXT $(tr -d '\n' </tmp/generated | sed 's/Then:.*//' | grep -o '"[^"]*"' | tr -d '"\n')"
            ;;
        "keys dkim activate") command postern keys dkim activate "$generated" ;;
        "keys dkim retire")
            later dkim_keys deactivated_at -2000000
            command postern keys dkim retire "$(selectors | grep -vxF "$generated")"
            ;;
        *) command postern "$@" ;;
        esac
    }
    selectors() { command postern keys dkim list | cut -f2; }
    ;;
"postern keys signing"*)
    installation
    set_key provider issuer https://id.example
    # The next key was published a day ago.
    command postern keys signing generate >/dev/null
    later identity_keys created_at -100000
    service
    ;;
"postern explain"* | "postern verify"*)
    installation; juice
    replace bq77okvl7j@relay.example "$address"
    echo '{"juice.example": {"TXT": ["v=spf1 ip4:192.0.2.10 -all"]}, "slow.example": {"error": "TIMEOUT"}}' >dns.json
    printf 'From: <orders@juice.example>\r\nTo: <%s>\r\nSubject: Order\r\n\r\nThank you.\r\n' "$address" >message.eml
    ;;
"postern team add"*) installation ;;
"postern import"*)
    installation; juice
    printf 'user,inbox,team\nanna,anna@home.example,juice\nbob,bob@home.example,juice\n' >people.csv
    ;;
"postern endpoint"*)
    installation; juice
    set_key provider issuer https://id.example
    certificate hooks.juice.example
    echo '{}' >/tmp/body
    https_server /tmp/body hooks.juice.example
    service
    ;;
"postern transfer"*) installation; juice; command postern team add other --name Other ;;
"postern issuer"*)
    installation; juice
    certificate appleid.apple.com
    signed_by_apple
    https_server /tmp/body appleid.apple.com
    ;;
"install -o postern"*)
    # What was brought along from the old machine.
    mail_system; installation; juice
    command postern store backup copy.db
    mv /var/lib/postern/postern.yaml /var/lib/postern/postern.keys .
    rm -f /var/lib/postern/postern.db*
    own_user
    ;;
"postern trace"*)
    installation; juice
    echo "Nov 28 09:00:01 mx postfix/smtpd[1]: 4ZxQy31vT1z9: client=out.juice.example[192.0.2.10]" >/var/log/mail.log
    echo "Nov 28 09:00:01 mx postern[1]: notice 550 5.1.1 queue=4ZxQy31vT1z9 ref=vgutqnhz" >>/var/log/mail.log
    # This machine has no journal, and its keys made no such return path.
    replace 'postern trace vgutqnhz .*' 'postern trace vgutqnhz --log /var/log/mail.log'
    replace 'news=[^ ]*' "$address"
    ;;
"postern delivery read"*)
    installation; juice
    echo "Nov 28 09:00:02 mx postfix/smtp[2]: 4ZxQy31vT1z9: to=<someone@elsewhere.example>, relay=mx.elsewhere.example[192.0.2.30]:25, delay=1, delays=0/0/0/1, dsn=2.0.0, status=sent (250 OK)" >/var/log/mail.log
    ;;
"postern user find"*)
    installation; juice
    sub=$(command postern account list | cut -f1 | head -1)
    for event in sign_in sensitive_action; do
        command postern decide juice --app com.example.juice --event $event --sub "$sub" >/dev/null
    done
    replace rd_ID "$(command postern decision list | cut -f2 | head -1)"
    ;;
*) installation; juice ;;
esac
