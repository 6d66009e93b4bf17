// Every Postfix setting that the relay needs, with its reason: the only source for fragments,
// `--apply` and `doctor`.

/// The settings of main.cf and master.cf.
package enum PostfixSettings {
    /// The destination of mail for a relay domain if a recipient was not rewritten: a port without
    /// a listener, so that the mail waits.
    package static let deadEndTransport = "smtp:[127.0.0.1]:9"

    /// Maximum errors of a session. With 10,000 recipients of other accounts, each must get its
    /// 452.
    package static let errorLimit = 20_000

    /// Settings of main.cf for a Postfix without its own virtual mailbox domains.
    package static func main(_ inputs: PostfixInputs) -> [PostfixSetting] {
        [
            PostfixSetting(
                "virtual_mailbox_domains", .containing(inputs.relayDomains),
                "mail for the relay domains is accepted here, with any local part: Postern decides at RCPT"
            ),
            PostfixSetting(
                "virtual_mailbox_maps", .exactly(""), "no list of addresses: Postern knows them"),
            PostfixSetting(
                "virtual_transport", .exactly(deadEndTransport),
                "if a recipient were not rewritten, its mail would wait in the queue, neither leaked nor lost"
            ),
            PostfixSetting(
                "smtpd_milters", .containing([inputs.socket]),
                "mail from SMTP clients passes Postern"),
        ] + internalMail(inputs) + filter + onward(inputs) + inward
            + (outgoing(inputs).map { [$0] } ?? [])
    }

    /// Settings of master.cf.
    package static func master(_ inputs: PostfixInputs) -> [MasterSetting] {
        [
            MasterSetting(
                service: "cleanup/unix", name: "milter_macro_daemon_name", value: "internal",
                reason:
                    "lets Postern distinguish Postfix's own mail (bounces) from mail that came by SMTP"
            )
        ] + inputs.incoming.flatMap { errorLimits($0, inputs) }
            + (inputs.fanOut.map { fanOut("\($0)/inet", inputs) } ?? [])
            + inputs.outgoing.flatMap(\.settings)
    }

    /// Parameters with an error limit: in main.cf they would apply to every
    /// smtpd, including submission.
    static let errorLimitNames = ["smtpd_soft_error_limit", "smtpd_hard_error_limit"]

    private static func errorLimits(_ service: String, _ inputs: PostfixInputs) -> [MasterSetting] {
        let reasons = [
            "a recipient of another account gets 452, which counts as an error: by default the client is slowed down after 10",
            "and after 20 it would be disconnected, and no one would get the mail",
        ]
        return zip(errorLimitNames, reasons).map {
            MasterSetting(
                service: service, name: $0,
                value: String(max(errorLimit, inputs.recipientLimit + 1)), reason: $1)
        }
    }

    /// Services that master.cf must have, by `name/type`, with the line that creates them.
    package static func services(
        _ inputs: PostfixInputs
    ) -> [(name: String, line: String, reason: String)] {
        let copies = inputs.fanOut.map {
            (
                "\($0)/inet", "\($0) inet n - n - - smtpd",
                "accepts the copies of a message to several users from Postern, and passes each to Postern's milter"
            )
        }
        return (copies.map { [$0] } ?? [])
            + inputs.outgoing.map {
                ("\($0.service)/unix", $0.line, "sends by the outgoing identity \($0.name)")
            }
    }

    /// The setting by which forwards leave by their team's identity; nil without identities.
    package static func outgoing(_ inputs: PostfixInputs) -> PostfixSetting? {
        inputs.outgoing.isEmpty
            ? nil
            : PostfixSetting(
                outgoingName,
                .beginningWith([OutgoingService.table(inputs.outgoing, inputs.relayDomains)]),
                "the last character of a return path shows the outgoing identity of the team")
    }

    static let outgoingName = "sender_dependent_default_transport_maps"

    /// The smtpd for copies. Only Postern reaches it, and the outer smtpd has already checked the
    /// client.
    private static func fanOut(_ service: String, _ inputs: PostfixInputs) -> [MasterSetting] {
        errorLimits(service, inputs)
            + [
                (
                    "milter_macro_daemon_name", "fanout",
                    "tells Postern that a message is a copy, which must not be copied again"
                ),
                (
                    "smtpd_authorized_xclient_hosts", "127.0.0.0/8",
                    "lets Postern name the client of the original message, so that SPF is evaluated for it"
                ),
                (
                    "smtpd_relay_restrictions", "reject_unauth_destination",
                    "a copy may go only to relay domains, for any client"
                ),
                (
                    "smtpd_milters", inputs.socket,
                    "the outer smtpd has already passed the message through your other filters, which would read their own marks"
                ),
                (
                    "smtpd_recipient_restrictions", "",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_client_restrictions", "",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_helo_restrictions", "",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_sender_restrictions", "",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_data_restrictions", "",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_end_of_data_restrictions", "",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_helo_required", "no",
                    "the outer smtpd has already checked or limited this"
                ),
                ("smtpd_tls_security_level", "none", "copies do not leave the machine"),
                ("smtpd_sasl_auth_enable", "no", "no one signs in here"),
                (
                    "smtpd_sasl_authenticated_header", "no",
                    "Postern recognizes its own copies by the login, which must not appear in a message"
                ),
                ("smtpd_client_connection_count_limit", "0", "all copies of a client come at once"),
                (
                    "smtpd_client_connection_rate_limit", "0",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_client_message_rate_limit", "0",
                    "the outer smtpd has already checked or limited this"
                ),
                (
                    "smtpd_client_recipient_rate_limit", "0",
                    "the outer smtpd has already checked or limited this"
                ),
            ].map { MasterSetting(service: service, name: $0.0, value: $0.1, reason: $0.2) }
    }

    private static func internalMail(_ inputs: PostfixInputs) -> [PostfixSetting] {
        [
            PostfixSetting(
                "non_smtpd_milters", .containing([inputs.socket]),
                "Postfix's own bounces name the real inbox: Postern must rebuild them"),
            PostfixSetting(
                "internal_mail_filter_classes", .containing(["bounce"]),
                "without it bounces pass no milter"),
        ]
    }

    private static let filter = [
        PostfixSetting(
            "milter_default_action", .exactly("tempfail"),
            "while Postern is down the sender keeps its mail; later versions of Postfix have another default"
        ),
        PostfixSetting(
            "milter_protocol", .exactly("6"),
            "the protocol version that supports every modification Postern makes"),
        PostfixSetting(
            "milter_connect_timeout", .atLeastSeconds(30), "time for a restart of Postern"),
        PostfixSetting("milter_command_timeout", .atLeastSeconds(30), "time for a busy store"),
        PostfixSetting(
            "milter_content_timeout", .atLeastSeconds(300),
            "time for DNS queries and large messages"),
        PostfixSetting(
            "soft_bounce", .exactly("no"),
            "otherwise refusals are retried for days instead of being reported"),
    ]

    /// Removes SMTPUTF8 from MAIL, but not for Postern's own mail, which is from a relay domain, as
    /// an inbox may need it. Non-ASCII addresses are accepted without it. `$$` means `$` in
    /// main.cf.
    static func withoutSMTPUTF8(_ relayDomains: [String]) -> String {
        let own = relayDomains.map(escaped).joined(separator: "|")
        return
            "regexp:{ { /^(MAIL FROM:<[^>]*@(\(own))>.*)$$/ $$1 } { /^(MAIL FROM:.*) SMTPUTF8(.*)$$/ $$1$$2 } }"
    }

    private static func onward(_ inputs: PostfixInputs) -> [PostfixSetting] {
        [
            PostfixSetting(
                "smtpd_discard_ehlo_keywords", .containing(["dsn", "silent-discard"]),
                "otherwise the ORCPT that Postfix sends after the rewriting would be the real inbox"
            ),
            PostfixSetting(
                "smtpd_command_filter",
                .unless(weak: [""], then: withoutSMTPUTF8(inputs.relayDomains)),
                "Postern's output is ASCII: if Postfix kept the client's SMTPUTF8, servers without SMTPUTF8 would refuse it"
            ),
            PostfixSetting(
                "strict_smtputf8", .exactly("no"),
                "otherwise Postfix refuses non-ASCII senders once SMTPUTF8 is removed"),
            PostfixSetting(
                "smtputf8_autodetect_classes", .exactly("sendmail, verify"),
                "Postfix checks the message before the rewriting: in other classes it would require SMTPUTF8 again"
            ),
            PostfixSetting(
                "disable_mime_output_conversion", .exactly("yes"),
                "otherwise Postfix re-encodes 8-bit mail after it was signed"),
            PostfixSetting(
                "smtp_line_length_limit", .exactly("0"),
                "otherwise Postfix breaks long lines after the mail was signed"),
            PostfixSetting(
                "smtp_header_checks", .beginningWith(["regexp:\(inputs.headerChecksFile)"]),
                "Postfix's own Received names the user's host, HELO, IP and the address written to; no milter sees it"
            ),
            PostfixSetting(
                "smtp_tls_security_level", .unless(weak: ["", "none"], then: "may"),
                "outbound TLS is off by default; dane is better if the resolver checks DNSSEC"),
        ]
    }

    private static let inward = [
        PostfixSetting(
            "message_size_limit", .atLeast(40_000_000, zeroIsUnlimited: true),
            "the default of 10,240,000 refuses a message of 25 MB"),
        PostfixSetting(
            "message_reject_characters", .characters("\\0"),
            "a NUL truncates a header field, for Postern and for later filters: such mail is refused"
        ),
        PostfixSetting(
            "smtpd_tls_security_level", .unless(weak: ["", "none"], then: "may"),
            "inbound TLS is off by default; needs a certificate (smtpd_tls_chain_files)"),
        PostfixSetting(
            "smtpd_forbid_bare_newline", .unless(weak: ["", "no"], then: "yes"),
            "a smuggled message would leave with our name and signature"),
        PostfixSetting(
            "smtpd_forbid_unauth_pipelining", .exactly("yes"),
            "likewise, by commands sent too early"),
    ]

    /// The header check that reduces Postfix's own Received so that it
    /// reveals nothing about the user.
    package static func headerChecks(hostName: String, mailName: String) -> String {
        let host = escaped(hostName)
        return """
            # Made by `postern setup postfix`. Postfix's own Received names the client's host, HELO, IP address and the recipient;
            # milters never see it. What remains: by whom, how, under which queue id, when. Applies to all mail sent by smtp(8).
            /^Received: from .*[[:space:]]by (\(host)) \\(\(escaped(mailName))\\) with ([A-Z0-9]+) id ([A-Za-z0-9]+).*;[[:space:]]*([^;]*)$/
                REPLACE Received: by $1 (\(mailName)) with $2 id $3; $4

            """
    }

    /// A POSIX extended regular expression that matches only `text`.
    static func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            if "\\.[]{}()*+?^$|/".contains(character) { result.append("\\") }
            result.append(character)
        }
    }
}
