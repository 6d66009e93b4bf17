// Applies each rule to the operator's own value.

/// Builds a plan.
struct Planner {
    let inputs: PostfixInputs
    let configuration: PostfixConfiguration
    var plan: SetupPlan
    private var planned: PlannedValues

    /// Settings that depend on whether Postfix has its own virtual mailbox domains.
    static let domainSettings: Set = [
        "virtual_mailbox_domains", "virtual_mailbox_maps", "virtual_transport",
    ]

    init(inputs: PostfixInputs, configuration: PostfixConfiguration) {
        self.inputs = inputs
        self.configuration = configuration
        plan = SetupPlan(directory: configuration.directory)
        planned = PlannedValues(configuration.values)
    }

    private func raw(_ name: String) -> String { configuration.values[name] ?? "" }
    private func expanded(_ name: String) -> String { configuration.expanded[name] ?? "" }

    private mutating func change(_ name: String, to new: String, _ reason: String) {
        guard raw(name) != new else { return }
        plan.mainChanges.append(SettingChange(name: name, old: raw(name), new: new, reason: reason))
        planned.set(name, to: new)
    }

    /// The relay domains: alone, or in addition to virtual mailbox domains that the operator hosts.
    mutating func domains() {
        let settings = Dictionary(
            PostfixSettings.main(inputs).map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first })
        let domainsReason = settings["virtual_mailbox_domains"]?.reason ?? ""
        // The default, $virtual_mailbox_maps, means the domains in those maps.
        var items = PostfixList.items(raw("virtual_mailbox_domains"))
        let maps = PostfixList.items(raw("virtual_mailbox_maps"))
        if maps.isEmpty { items.removeAll { $0 == "$virtual_mailbox_maps" } }
        let known = inputs.relayDomains + inputs.formerDomains
        let foreign = items.filter {
            !planned.items(in: $0).allSatisfy { known.contains($0.lowercased()) }
        }
        let listed = planned.items(in: PostfixList.text(items)).map { $0.lowercased() }
        let missing = inputs.relayDomains.filter { !listed.contains($0) }
        let left = items.filter { !inputs.formerDomains.contains($0.lowercased()) }
        if !missing.isEmpty || left != items {
            change("virtual_mailbox_domains", to: PostfixList.text(left + missing), domainsReason)
        }
        // An operator's line for all mail, as for a smarthost, would take precedence over
        // virtual_transport.
        let isRouted = inputs.relayDomains.contains { domain in
            configuration.routes[domain].map { DeadEndTransport.port($0) == nil } ?? false
        }
        if foreign.isEmpty && maps.isEmpty && !isRouted {
            change(
                "virtual_transport", to: PostfixSettings.deadEndTransport,
                settings["virtual_transport"]?.reason ?? "")
            return
        }
        let keeps =
            foreign.isEmpty ? "" : "virtual_mailbox_domains keeps \(PostfixList.text(foreign)); "
        plan.notes.append(
            "\(keeps)your virtual_transport stays, the relay domains get transport_maps")
        if !maps.isEmpty {
            let all =
                "inline:{ "
                + inputs.relayDomains.map { "{ @\($0) = postern }" }.joined(separator: ", ") + " }"
            if !planned.items(of: "virtual_mailbox_maps").contains(all) {
                change(
                    "virtual_mailbox_maps",
                    to: PostfixList.text(maps.filter { !isOurs($0, value: "postern") } + [all]),
                    "any local part of the relay domains exists: Postern knows the addresses; your own tables are kept"
                )
            }
        }
        let transports =
            "inline:{ "
            + inputs.relayDomains.map { "{ \($0) = \(PostfixSettings.deadEndTransport) }" }.joined(
                separator: ", ")
            + " }"
        let present = PostfixList.items(raw("transport_maps"))
        if planned.items(of: "transport_maps").first != transports {
            let kept = present.filter { !isOurs($0, value: PostfixSettings.deadEndTransport) }
            change(
                "transport_maps", to: PostfixList.text([transports] + kept),
                settings["virtual_transport"]?.reason ?? "")
        }
    }

    /// Whether an earlier set-up made this inline table, perhaps for other relay domains.
    private func isOurs(_ item: String, value: String) -> Bool {
        item.hasPrefix("inline:{ {") && item.hasSuffix("= \(value) } }")
    }

    mutating func setting(_ setting: PostfixSetting) {
        let name = setting.name
        switch setting.rule {
        case .exactly(let value):
            if expanded(name) != value { change(name, to: value, setting.reason) }
        case .atLeast(let number, let zeroIsUnlimited):
            let present = Int(expanded(name)) ?? -1
            if present < number && !(zeroIsUnlimited && present == 0) {
                change(name, to: String(number), setting.reason)
            }
        case .atLeastSeconds(let seconds):
            if (PostfixList.seconds(expanded(name)) ?? -1) < seconds {
                change(name, to: setting.value, setting.reason)
            }
        case .containing(let items):
            let present = PostfixList.items(raw(name))
            let ours = items.map { listed($0, in: name) }
            let former = name.hasSuffix("_milters") ? inputs.formerSockets : []
            let kept = withoutRepetition(
                present.filter { !former.contains(PostfixList.milterSocket($0)) }, of: ours,
                in: name)
            let seen = planned.items(in: PostfixList.text(kept)).map { listed($0, in: name) }
            let missing = items.filter { !seen.contains(listed($0, in: name)) }
            let ordered = name.hasSuffix("_milters") ? lastOurs(kept, ours, in: name) : kept
            guard ordered != present || !missing.isEmpty else { return }
            change(
                name, to: PostfixList.text(ordered + missing),
                ordered == kept
                    ? setting.reason
                    : "\(setting.reason), after all others: milters after it would write the inbox into answers"
            )
            if !missing.isEmpty, !kept.isEmpty {
                plan.notes.append("\(name) keeps \(PostfixList.text(kept)), before ours")
            }
        case .beginningWith(let items):
            // A table of ours for other identities or relay domains is replaced.
            let present = PostfixList.items(raw(name)).filter {
                !OutgoingService.isTable($0) || items.contains($0)
            }
            guard Array(planned.items(of: name).prefix(items.count)) != items else { return }
            let kept = present.filter { !items.contains($0) }
            change(name, to: PostfixList.text(items + kept), setting.reason)
            if !kept.isEmpty {
                plan.notes.append("\(name) keeps \(PostfixList.text(kept)), after ours")
            }
        case .unless(let weak, let value):
            guard weak.contains(expanded(name)) else { return }
            if name == "smtpd_tls_security_level", !hasCertificate {
                plan.notes.append(
                    "inbound TLS stays off, because there is no certificate: set smtpd_tls_chain_files, then run this again"
                )
                return
            }
            change(name, to: value, setting.reason)
        case .characters(let escape):
            let present = raw(name)
            if !Self.escapes(expanded(name)).contains(escape) {
                change(name, to: present + escape, setting.reason)
            }
        }
    }

    /// Removes the table of identities that are no longer configured. Their services stay: they
    /// send nothing.
    mutating func withoutOutgoing() {
        let name = PostfixSettings.outgoingName
        let present = PostfixList.items(raw(name))
        let kept = present.filter { !OutgoingService.isTable($0) }
        guard kept.count < present.count else { return }
        change(name, to: PostfixList.text(kept), "no outgoing identities are configured any more")
    }

    /// The form in which items of a list are compared: milters by their sockets, words without
    /// regard to case.
    private func listed(_ item: String, in name: String) -> String {
        name.hasSuffix("_milters") ? PostfixList.milterSocket(item) : item.lowercased()
    }

    /// A list without repetitions of our items, including those by reference. A message that passes
    /// Postern twice would count as a loop.
    private func withoutRepetition(
        _ present: [String], of ours: [String], in name: String
    ) -> [String] {
        let isOurs = { (item: String) in ours.contains(listed(item, in: name)) }
        var seen = Set(
            present.filter { !isOurs($0) }.flatMap { planned.items(in: $0) }.map {
                listed($0, in: name)
            })
        return present.filter { !isOurs($0) || seen.insert(listed($0, in: name)).inserted }
    }

    /// Milters with ours at the end. A milter after it may add fields to an answer, such as
    /// `Authentication-Results`, that name the user's inbox.
    private func lastOurs(_ items: [String], _ ours: [String], in name: String) -> [String] {
        items.filter { !ours.contains(listed($0, in: name)) }
            + items.filter { ours.contains(listed($0, in: name)) }
    }

    /// The milters after ours; empty if there are none, or if ours is not among them.
    private func behindOurs(_ all: [String]) -> [String] {
        guard let last = all.lastIndex(where: { PostfixList.milterSocket($0) == inputs.socket })
        else { return [] }
        return Array(all[(last + 1)...])
    }

    private func conflict(_ parameter: String, _ behind: [String]) -> String {
        let milters = PostfixList.text(behind)
        return
            "\(parameter) has \(milters) after Postern: the fields that it adds to an answer may name the user's inbox. Write \(milters) before \(inputs.socket)"
    }

    private var hasCertificate: Bool {
        ["smtpd_tls_chain_files", "smtpd_tls_cert_file", "smtpd_tls_eccert_file"].contains {
            !expanded($0).isEmpty
        }
    }

    /// The C escapes of a text, one by one: `\0\200` gives `\0` and `\200`. `\000` and similar
    /// count as `\0`.
    private static func escapes(_ text: String) -> [String] {
        text.split(separator: "\\").map { part in
            let digits = part.prefix { ("0"..."7").contains($0) }.prefix(3)
            return !digits.isEmpty && digits.allSatisfy { $0 == "0" } ? "\\0" : "\\\(part)"
        }
    }

    mutating func master() {
        for service in PostfixSettings.services(inputs)
        where configuration.fields[service.name + "/command"] == nil {
            plan.newServices.append(
                SettingChange(
                    name: service.name, old: "", new: service.line, reason: service.reason))
        }
        for setting in PostfixSettings.master(inputs) {
            let name = "\(setting.service)/\(setting.name)"
            // An empty value must be written too. Without it, that of main.cf applies.
            let old =
                configuration.master[name] ?? (setting.value.isEmpty ? "(that of main.cf)" : "")
            let isEnough =
                PostfixSettings.errorLimitNames.contains(setting.name)
                && (Int(old) ?? 0) >= (Int(setting.value) ?? 0)
            if old != setting.value, !isEnough {
                plan.masterChanges.append(
                    SettingChange(name: name, old: old, new: setting.value, reason: setting.reason))
            }
        }
    }

    /// Problems that none of our settings can fix.
    mutating func examine() {
        for parameter in PostfixConfiguration.taking + ["virtual_alias_maps"] {
            let listed = PostfixList.items(expanded(parameter))
            for domain in inputs.relayDomains {
                let table = listed.first {
                    $0.lowercased() == domain.lowercased()
                        || configuration.answers[TableQuestion(table: $0, key: domain)] != nil
                }
                guard let table else { continue }
                let place = table.lowercased() == domain.lowercased() ? "" : " (\(table))"
                plan.conflicts.append(
                    "\(domain) is also in \(parameter)\(place), which takes precedence: remove it there"
                )
            }
        }
        for domain in inputs.relayDomains
        where PostfixList.items(expanded("relay_domains")).contains(where: {
            $0.lowercased() == domain.lowercased()
        }) {
            plan.notes.append(
                "\(domain) is also in relay_domains, and Postfix warns about that: remove it there")
        }
        examineMasquerade()
        if inputs.incoming.isEmpty, !configuration.fields.isEmpty {
            plan.conflicts.append(
                "no service of master.cf that accepts mail from other servers uses Postern: each has its own smtpd_milters, or no_milters. "
                    + "Remove those settings, or add Postern's milter to them")
        }
        if !expanded("smtpd_milter_maps").isEmpty {
            plan.bypasses.append(
                "smtpd_milter_maps is set: clients it lists bypass smtpd_milters, and so Postern")
        }
        if !expanded("smtpd_discard_ehlo_keyword_address_maps").isEmpty {
            plan.notes.append(
                "smtpd_discard_ehlo_keyword_address_maps is set: it must not offer DSN for mail to the relay"
            )
        }
        if PostfixList.items(expanded("receive_override_options")).contains("no_milters") {
            plan.conflicts.append(
                "receive_override_options has no_milters in main.cf: no mail would pass Postern")
        }
        for parameter in ["smtpd_milters", "non_smtpd_milters"] {
            // If a name refers to several milters, their order can be changed only at the
            // definition of that name.
            let behind = behindOurs(planned.items(of: parameter))
            if !behind.isEmpty { plan.conflicts.append(conflict(parameter, behind)) }
            for item in PostfixList.items(expanded(parameter))
            where item.hasPrefix("{") && PostfixList.milterSocket(item) == inputs.socket
                && item.contains("default_action")
                && !item.replacing(" ", with: "").contains("default_action=tempfail")
            {
                plan.conflicts.append(
                    "\(parameter) gives Postern a default_action other than tempfail: \(item)")
            }
        }
        examineMaster()
        examineRestrictions()
        examineRewriting()
        if !expanded("content_filter").isEmpty {
            plan.notes.append(
                "content_filter is set: it gets mail after Postern, and the mail that it returns must not pass Postern again (no_milters there)"
            )
        }
        let size = Int(expanded("message_size_limit")) ?? 0
        for parameter in ["mailbox_size_limit", "virtual_mailbox_limit"] {
            if let limit = Int(expanded(parameter)), limit > 0, limit < max(size, 40_000_000) {
                plan.conflicts.append(
                    "\(parameter) is \(limit), less than message_size_limit will be: raise it or set it to 0"
                )
            }
        }
    }

    /// Finds restrictions that refuse mail to relay addresses before Postfix calls Postern.
    private mutating func examineRestrictions() {
        let planned = planned
        let (domains, answers) = (inputs.relayDomains, configuration.answers)
        let restrictions = Restrictions(
            items: { planned.items(of: $0) },
            classes: Set(planned.items(of: "smtpd_restriction_classes")),
            recipientAccess: { table in
                domains.lazy.flatMap(PostfixConfiguration.withParents)
                    .compactMap { answers[TableQuestion(table: table, key: $0)] }.first
            })
        var lists = Restrictions.lists.map { ($0, planned.items(of: $0)) }
        for service in inputs.incoming {
            lists += Restrictions.lists.compactMap { name in
                configuration.master["\(service)/\(name)"].map {
                    ("\(service)/\(name)", planned.items(in: $0))
                }
            }
        }
        for (name, items) in lists {
            guard let item = restrictions.refusal(in: items) else { continue }
            plan.conflicts.append(
                "\(name) has \(item), which refuses mail from other servers to every relay address: write "
                    + (name.hasSuffix("smtpd_relay_restrictions")
                        || name.hasSuffix("smtpd_recipient_restrictions")
                        ? "permit_auth_destination before it, or remove it"
                        : "the intended restriction instead, or remove it"))
        }
    }

    /// Finds tables that replace every relay address before Postern sees the message.
    private mutating func examineRewriting() {
        for parameter in PostfixConfiguration.rewriting {
            for table in PostfixList.items(expanded(parameter)) {
                for domain in inputs.relayDomains {
                    guard
                        let answer = configuration.answers[
                            TableQuestion(table: table, key: "@\(domain)")],
                        answer.lowercased() != "@\(domain)"
                    else { continue }
                    plan.conflicts.append(
                        "\(parameter) has @\(domain) in \(table): mail to every relay address bypasses Postern. Remove it there"
                    )
                }
            }
        }
    }

    /// Debian runs smtpd and cleanup in a chroot, from which they cannot reach a unix socket
    /// elsewhere.
    mutating func examineChroot() {
        guard inputs.socket.hasPrefix("unix:") else { return }
        let services = configuration.fields.compactMap { name, value -> String? in
            guard name.hasSuffix("/chroot"), value == "y" else { return nil }
            let service = String(name.dropLast("/chroot".count))
            let program = configuration.fields["\(service)/command"]?.split(separator: " ").first
            return program == "smtpd" || program == "cleanup" ? service : nil
        }
        guard !services.isEmpty else { return }
        let list = services.sorted().joined(separator: ", ")
        plan.conflicts.append(
            "\(list) run in the chroot \(expanded("queue_directory")), from where \(inputs.socket) cannot be reached: "
                + "let Postern listen on a TCP port (inet:127.0.0.1:8891), or disable the chroot with postconf -F "
                + services.sorted().map { "\($0)/chroot=n" }.joined(separator: " "))
    }

    /// Finds a setting that removes the name of a relay domain from the envelope senders of
    /// forwards, so that no bounce returns.
    private mutating func examineMasquerade() {
        let items = PostfixList.items(expanded("masquerade_domains")).map { $0.lowercased() }
        for domain in inputs.relayDomains {
            for item in items {
                if item.hasPrefix("!") {
                    let excepted = item.dropFirst()
                    if domain == excepted || domain.hasSuffix("." + excepted) { break }
                } else if domain.hasSuffix("." + item) {
                    plan.conflicts.append(
                        "masquerade_domains has \(item), which makes \(domain) into \(item) in outgoing mail: write !\(domain) before it"
                    )
                    break
                }
            }
        }
    }

    /// Services with their own settings.
    private mutating func examineMaster() {
        let changed = Set(plan.masterChanges.map(\.name))
        for (name, value) in configuration.master.sorted(by: { $0.key < $1.key })
        where !changed.contains(name) {
            let service = name.split(separator: "/").prefix(2).joined(separator: "/")
            if name.hasSuffix("/smtpd_milters") {
                let sockets = planned.items(in: value).map(PostfixList.milterSocket)
                if !sockets.contains(inputs.socket) {
                    plan.bypasses.append(
                        "\(service) has its own smtpd_milters: mail that arrives there bypasses Postern"
                    )
                }
                let behind = behindOurs(planned.items(in: value))
                if !behind.isEmpty {
                    plan.conflicts.append(conflict("\(service)/smtpd_milters", behind))
                }
            } else if name.hasSuffix("/receive_override_options"),
                planned.items(in: value).contains("no_milters")
            {
                plan.bypasses.append(
                    "\(service) has no_milters: mail that arrives there bypasses Postern")
            } else if name.hasSuffix("/milter_default_action"), value != "tempfail" {
                plan.conflicts.append(
                    "\(service) has milter_default_action=\(value): while Postern is down mail would pass unrewritten"
                )
            } else if name.hasSuffix("/milter_macro_daemon_name"), value == "internal",
                service != "cleanup/unix"
            {
                plan.conflicts.append(
                    "\(service) has the name internal, which is reserved for Postfix's own mail (milter_macro_daemon_name)"
                )
            }
        }
    }
}
