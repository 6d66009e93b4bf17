// policy.yaml → Policy: the top level of the file. Faults are collected, so that an author sees all
// of them together.

import CEL
import Support
import Yams

/// The content of a file that `lists:` names.
package enum ListFileText: Sendable {
    case absent
    case text(String)
    /// The reason.
    case unreadable(String)
}

/// External inputs of loading.
package struct PolicyLoadOptions: Sendable {
    /// Names of time zones.
    package var zones = TimeZoneOffsets.none
    /// The file named in `lists:`, by its path relative to the policy's folder.
    package var listFile: @Sendable (String) -> ListFileText = { _ in .absent }
    /// Number of generated inputs on which the guarantees must hold before the policy is accepted.
    package var generatedInputs = 2_000
    /// Whether a part of a condition that can only fail is a fault. False for a policy that was
    /// accepted before: a host must not lose it because of a newer check.
    package var refusesCertainFailures = true

    /// No zones, no list files, 2,000 generated inputs.
    package init() {}
}

/// Loads policies.
package struct PolicyLoader {
    let reader: YAMLReader
    let options: PolicyLoadOptions
    var parts = PolicyParts()

    /// Loads a policy and checks its guarantees on generated inputs. Tests are run
    /// separately (`PolicyTestSuite`).
    ///
    /// - Parameters:
    ///   - text: the content of policy.yaml.
    ///   - file: its name for messages.
    /// - Throws: `PolicyRefusal` with all faults.
    package static func load(
        _ text: String, file: String = "policy.yaml",
        options: PolicyLoadOptions = PolicyLoadOptions()
    ) throws(PolicyRefusal) -> Policy {
        let yaml = try YAMLFile(name: file, text: text)
        let faults = DiagnosticCollector()
        var loader = PolicyLoader(reader: YAMLReader(file: yaml, faults: faults), options: options)
        let guarantees = loader.read(yaml.root)
        try faults.throwIfAny()
        let policy = Policy(parts: loader.parts, zones: options.zones)
        policy.checkGuarantees(loader.reader, guarantees, inputs: options.generatedInputs)
        try faults.throwIfAny()
        return policy
    }

    private init(reader: YAMLReader, options: PolicyLoadOptions) {
        self.reader = reader
        self.options = options
    }

    /// Reads everything; returns the guarantees' nodes.
    private mutating func read(_ root: Node) -> [Node] {
        parts.kind = kind(root)
        let (required, optional) =
            parts.kind == .status
            ? ([], ["decides"]) : (["challenges"], ["decides", "live_lists", "counters"])
        guard
            let fields = reader.fields(
                root, "a policy",
                required: ["policy", "version"] + required + ["defaults", "signals", "rules"],
                optional: ["description", "constants", "lists", "guarantees"] + optional)
        else { return [] }
        parts.name = label(fields["policy"], "policy")
        parts.version = label(fields["version"], "version")
        if (parts.kind == .status) != (parts.name == PolicyKind.statusName),
            let node = fields["policy"]
        {
            reader.report(
                node,
                "'\(PolicyKind.statusName)' is the name of the policy with 'decides: status', and of no other"
            )
        }
        if let node = fields["signals"] { readSignals(node) }
        if let node = fields["counters"] { readCounters(node) }
        parts.scope.declare("now", .timestamp)
        parts.scope.allowsHasOfVariable = true
        if let node = fields["constants"] { readConstants(node) }
        if let node = fields["lists"] { readLists(node) }
        if let node = fields["live_lists"] { readLiveLists(node) }
        if parts.kind == .status { return readStatus(fields) }
        if let node = fields["challenges"] { readChallenges(node) }
        if let node = fields["defaults"] { readDefaults(node) }
        if let node = fields["rules"] { readRules(node) }
        let guarantees = fields["guarantees"].map { readGuarantees($0) } ?? []
        if let node = fields["rules"] { checkCost(node) }
        return guarantees
    }

    /// Read first, because the other allowed keys depend on it.
    private func kind(_ root: Node) -> PolicyKind {
        guard let node = root.mapping?["decides"] else { return .verification }
        return reader.word(node, "decides", among: PolicyKind.allCases.map(\.rawValue)).flatMap(
            PolicyKind.init) ?? .verification
    }

    /// A decision has one budget for all its conditions.
    func checkCost(_ node: Node) {
        for event in PolicyEvent.allCases {
            let rules = parts.rules.filter { $0.mode != .disabled && $0.events.contains(event) }
                .map(\.condition)
            let challenges = parts.challenges.filter { $0.isOffered(for: event) }.compactMap(
                \.unavailableWhen)
            let all = rules + challenges + parts.guarantees.map(\.condition)
            let cost = all.reduce(0) { ResolvedExpression.capped($0, $1.resolved.largestCost) }
            guard cost > ExpressionLimits.maximumSteps else { continue }
            let limit = ExpressionLimits.maximumSteps
            return reader.report(
                node,
                "the conditions are over budget: together they can take more than \(limit) steps for '\(event.rawValue)'"
            )
        }
    }

    // MARK: Names

    /// People see, type and compare the policy's name and version, so they must be single words.
    private func label(_ node: Node?, _ what: String) -> String {
        guard let node, let text = reader.text(node, what) else { return "" }
        let isWord =
            text.utf8.count <= 64
            && text.utf8.allSatisfy {
                $0.isIdentifierStart || $0.isASCIIDigit || "-._:".utf8.contains($0)
            }
        let startsWell =
            text.utf8.first.map {
                ($0.isIdentifierStart || $0.isASCIIDigit) && $0 != UInt8(ascii: "_")
            } ?? false
        if !isWord || !startsWell {
            reader.report(
                node,
                "'\(what)' must be up to 64 letters, digits, '-', '_', '.' and ':', beginning with a letter or digit"
            )
        }
        return text
    }

    static func isName(_ text: Substring) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.first?.isIdentifierStart == true && bytes.count <= 64
            && bytes.allSatisfy { $0.isIdentifierStart || $0.isASCIIDigit }
    }

    /// Reports a name that a signal, constant or list already has.
    private func isFree(_ name: String, _ node: Node) -> Bool {
        let scope = parts.scope
        guard scope.variables[name] == nil, scope.constants[name] == nil, scope.sets[name] == nil
        else {
            reader.report(node, "'\(name)' is already declared")
            return false
        }
        return true
    }

    // MARK: Signals, constants, lists

    private mutating func readSignals(_ node: Node) {
        guard let entries = reader.entries(node, "signals") else { return }
        guard entries.count <= PolicyFileLimits.maximumSignals else {
            return reader.report(node, "more than \(PolicyFileLimits.maximumSignals) signals")
        }
        for entry in entries {
            guard
                entry.key.split(separator: ".", omittingEmptySubsequences: false).allSatisfy(
                    Self.isName), entry.key != "now"
            else {
                reader.report(entry.keyNode, "'\(entry.key)' cannot be the name of a signal")
                continue
            }
            // A faulty declaration still declares the name, so that there is one fault, not one for
            // each use.
            let signal =
                readSignal(entry.key, entry.keyNode, entry.value)
                ?? SignalDeclaration(
                    name: entry.key, type: .dyn, mayBeMissing: true, source: .context)
            parts.scope.declare(signal.name, signal.type)
            parts.signals.append(signal)
        }
        if parts.kind == .verification, !parts.signals.contains(where: { $0.name == "event" }),
            !entries.contains(where: { $0.key == "event" })
        {
            reader.report(node, "signals need 'event: string'")
        }
    }

    private func readSignal(_ name: String, _ nameNode: Node, _ node: Node) -> SignalDeclaration? {
        var typeNode = node
        var bounds: [String: Node] = [:]
        if case .mapping = node {
            guard
                let fields = reader.fields(
                    node, "a signal", required: ["type"], optional: ["min", "max", "max_length"]),
                let type = fields["type"]
            else { return nil }
            typeNode = type
            bounds = fields
        }
        guard let text = reader.text(typeNode, "the type of '\(name)'") else { return nil }
        let mayBeMissing = text.hasSuffix("?")
        guard let type = CELType(text: mayBeMissing ? String(text.dropLast()) : text) else {
            reader.report(typeNode, "unknown type '\(text)'")
            return nil
        }
        let supplied = parts.kind == .status ? StandardSignal.ofStatus : StandardSignal.ofDecisions
        let source: SignalDeclaration.Source
        if name.hasPrefix(ContextSignals.prefix), parts.kind == .verification {
            guard ContextSignals.types.contains(type) else {
                reader.report(typeNode, "a signal cannot be of type \(type.text)")
                return nil
            }
            source = .context
        } else {
            guard let signal = StandardSignal(rawValue: name), supplied.contains(signal) else {
                guard !name.hasPrefix("velocity.") else {
                    reader.report(nameNode, "'\(name)' is declared under 'counters', not here")
                    return nil
                }
                let hint = suggestion(for: name, among: supplied.map(\.rawValue))
                let own =
                    parts.kind == .status
                    ? " for a status" : "; an operator's own signals must begin with 'context.'"
                reader.report(nameNode, "Postern supplies no signal '\(name)'\(hint)\(own)")
                return nil
            }
            let standard = signal.facts.type
            guard text == standard else {
                reader.report(typeNode, "'\(name)' is declared as \(standard), not \(text)")
                return nil
            }
            source = .postern(signal)
        }
        var signal = SignalDeclaration(
            name: name, type: type, mayBeMissing: mayBeMissing, source: source)
        for (key, boundNode) in bounds.sorted(by: { $0.key < $1.key }) where key != "type" {
            guard let scalar = reader.scalar(boundNode, key) else { continue }
            let number: Double? =
                switch YAMLReader.value(scalar) {
                case .int(let int): Double(int)
                case .double(let double): double
                default: nil
                }
            guard let number,
                key == "max_length"
                    ? type == .string && number >= 1 && number <= 65_536 : type.isNumber
            else {
                reader.report(boundNode, "'\(key)' does not fit a signal of type \(type.text)")
                continue
            }
            switch key {
            case "min": signal.minimum = number
            case "max": signal.maximum = number
            default: signal.maximumLength = Int(number)
            }
        }
        return signal
    }

    private mutating func readConstants(_ node: Node) {
        guard let entries = reader.entries(node, "constants") else { return }
        guard entries.count <= PolicyFileLimits.maximumConstants else {
            return reader.report(node, "more than \(PolicyFileLimits.maximumConstants) constants")
        }
        for entry in entries {
            guard Self.isName(entry.key[...]) else {
                reader.report(entry.keyNode, "'\(entry.key)' cannot be the name of a constant")
                continue
            }
            guard isFree(entry.key, entry.keyNode),
                let scalar = reader.scalar(entry.value, "a constant")
            else { continue }
            switch YAMLReader.value(scalar) {
            case .null: reader.report(entry.value, "a constant needs a value")
            case let value: parts.scope.constants[entry.key] = value
            }
        }
    }

    private mutating func readLists(_ node: Node) {
        guard let entries = reader.entries(node, "lists") else { return }
        for entry in entries {
            guard Self.isName(entry.key[...]) else {
                reader.report(entry.keyNode, "'\(entry.key)' cannot be the name of a list")
                continue
            }
            guard isFree(entry.key, entry.keyNode) else { continue }
            var set: Set<ExactString> = []
            if case .sequence(let sequence) = entry.value {
                for element in sequence {
                    if let text = reader.text(element, "an entry of a list") {
                        set.insert(ExactString(text))
                    }
                }
            } else {
                guard let path = reader.text(entry.value, "a list") else { continue }
                guard !path.hasPrefix("/"), !path.split(separator: "/").contains("..") else {
                    reader.report(entry.value, "a list's file must be inside the policy's folder")
                    continue
                }
                switch options.listFile(path) {
                case .absent:
                    reader.report(entry.value, "no such file inside the policy's folder: '\(path)'")
                    continue
                case .unreadable(let reason):
                    reader.report(entry.value, "the file '\(path)' cannot be read: \(reason)")
                    continue
                case .text(let text):
                    for line in PersonText.lines(text) {
                        let entry = line.unicodeScalars.prefix { $0 != "#" }.drop(
                            while: \.properties.isWhitespace)
                        let end = entry.lastIndex { !$0.properties.isWhitespace }
                        if let end {
                            set.insert(ExactString(String(String.UnicodeScalarView(entry[...end]))))
                        }
                    }
                }
            }
            if options.refusesCertainFailures {
                for text in set.map(\.text).filter(CELNetwork.isMistaken).sorted().prefix(5) {
                    reader.report(
                        entry.value,
                        "'\(text)' looks like an address or a range, but is neither: it would match only itself"
                    )
                }
            }
            if set.count > PolicyFileLimits.maximumListEntries {
                reader.report(
                    entry.value, "more than \(PolicyFileLimits.maximumListEntries) entries")
            }
            parts.scope.sets[entry.key] = StringList(set)
        }
    }

    // MARK: Conditions

    /// A condition of type bool within its budget; otherwise nil and a fault.
    mutating func condition(_ node: Node?, _ what: String) -> PolicyExpression? {
        guard let node, let scalar = reader.scalar(node, what) else { return nil }
        do throws(ExpressionFault) {
            let resolved = try Checker.resolve(scalar.string, in: parts.scope)
            guard
                resolved.type == .bool
                    || (resolved.type == .dyn && !reader.faults.diagnostics.isEmpty)
            else {
                throw ExpressionFault(
                    "\(what) must be a bool, this is \(resolved.type.text)", at: resolved.span)
            }
            guard resolved.largestCost <= ExpressionLimits.maximumSteps else {
                throw ExpressionFault(
                    "\(what) is over budget: it can take more than \(ExpressionLimits.maximumSteps) steps",
                    at: resolved.span)
            }
            if let list = resolved.misusedLiveList {
                throw ExpressionFault("a live list can only be on the right of 'in'", at: list.span)
            }
            resolved.prepareLists()
            if options.refusesCertainFailures,
                let failure = resolved.certainFailure(zones: options.zones)
            {
                throw failure
            }
            return PolicyExpression(
                text: scalar.string, resolved: resolved, position: reader.file.position(of: node))
        } catch {
            reader.report(scalar, utf8Offset: error.span.lowerBound, error.message)
            return nil
        }
    }
}

extension ResolvedExpression {
    /// Maximum steps of an evaluation, as far as the text shows: lists from signals count with
    /// their largest size.
    var largestCost: Int {
        func sum(_ parts: [ResolvedExpression]) -> Int {
            parts.reduce(1) { Self.capped($0, $1.largestCost) }
        }
        guard case .comprehension(_, let range, let predicate, let transform) = kind else {
            return sum(children)
        }
        let body = sum([predicate, transform].compactMap { $0 })
        let (product, overflow) = range.largestCount.multipliedReportingOverflow(by: body)
        return Self.capped(range.largestCost, overflow ? Int.max : product)
    }

    fileprivate static func capped(_ left: Int, _ right: Int) -> Int {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow ? Int.max : sum
    }

    private var largestCount: Int {
        switch kind {
        case .list(let elements): elements.count
        case .map(let entries): entries.count
        case .stringSet(let set): set.count
        case .constant(.list(let elements)): elements.count
        case .comprehension(.filter, let range, _, _), .comprehension(.map, let range, _, _):
            range.largestCount
        case .binary(.add, let left, let right): Self.capped(left.largestCount, right.largestCount)
        case .conditional(_, let yes, let no): max(yes.largestCount, no.largestCount)
        default: PolicyFileLimits.maximumListElements
        }
    }
}
