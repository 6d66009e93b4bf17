// One pair: the team's text, and the action of the user's program. Made from a number, and made
// smaller if it differs.

import TestSupport

/// Everything that determines both mails of a pair and both answers.
package struct PairSpec: Sendable, CustomStringConvertible {
    package enum Shape: String, CaseIterable, Sendable {
        case plain, markup, alternative, signed, outlook, file, invitation
    }
    package enum Coding: String, CaseIterable, Sendable { case plain, quotedPrintable, base64 }

    package let seed: UInt64
    /// An index of the list of forms.
    package let form: Int
    /// The form in which the user answers a partner that quoted the mail; nil without a partner.
    package var partnersReader: Int?
    package var plants: [Plant]
    package var shape: Shape
    package var coding: Coding
    /// The encoding of the answer.
    package var answerCoding: Coding
    /// Lines without a meaning.
    package var fillers: Int
    /// Addresses of others in the team's text.
    package var crowd: Int
    /// Whether the user also writes the inbox.
    package var typesInbox: Bool
    /// Addresses of others that the user writes.
    package var typesOthers: Int
    /// Whether the team's mail has the inbox in To or Cc, regardless of its other guesses.
    package var isInboxInCc: Bool
    /// Whether the program removes comments, styles and scripts from markup.
    package var isSanitized: Bool
    package var needsUnsubscribe: Bool
    /// Whether the program answers to all.
    package var isToAll: Bool

    package var description: String {
        "\(shape), \(coding), answer \(answerCoding), [\(plants.map(\.description).joined(separator: " | "))], "
            + "fillers \(fillers), "
            + "crowd \(crowd), types inbox \(typesInbox), others \(typesOthers), inbox in Cc \(isInboxInCc), to all \(isToAll), "
            + "sanitized \(isSanitized)"
    }

    package var substitutions: Substitutions {
        var substitutions = Substitutions()
        for plant in plants {
            substitutions.learn(plant.text(.right), plant.text(.wrong))
            if plant.place == .dataURL {
                substitutions.learn(
                    TeamMail.pictureURL(plant.text(.right)), TeamMail.pictureURL(plant.text(.wrong))
                )
            }
            for spelling in [Spelling.plain, .upper] {
                let guess = Guess.all[plant.guess]
                substitutions.learn(
                    guess.spelled(spelling, .right), guess.spelled(spelling, .wrong))
            }
        }
        return substitutions
    }

    /// Whether one bit for each reply may differ: a returned file of the team's is refused or not.
    package var hasFile: Bool {
        plants.contains { $0.place == .textFile } || [.signed, .outlook, .file].contains(shape)
    }

    // MARK: Making

    /// - Parameter index: the form; nil for any.
    package init(seed: UInt64, forms: [ProgramForm], of index: Int? = nil) {
        var random = SeededGenerator(seed: seed &* 0x9E37 &+ 7)
        func chance(_ percent: UInt64) -> Bool { random.next() % 100 < percent }
        func pick<Value>(_ values: [Value]) -> Value {
            values[Int(random.next() % UInt64(values.count))]
        }
        self.seed = seed
        let programs = forms.indices.filter {
            !forms[$0].id.utf8.starts(with: "attribution".utf8)
                && !forms[$0].id.utf8.starts(with: "block".utf8)
        }
        // Two of three are the complete form of a program.
        form = index ?? (chance(66) ? pick(programs) : pick(Array(forms.indices)))
        let form = forms[form]
        partnersReader = form.isPartner ? pick(forms.indices.filter { forms[$0].isReply }) : nil
        needsUnsubscribe = form.isUnsubscribe
        let isInvitation = form.isCalendar || chance(4)
        shape =
            isInvitation
            ? .invitation
            : pick([
                .plain, .plain, .plain, .plain, .markup, .markup, .alternative, .alternative,
                .alternative, .alternative, .signed,
                .outlook, .file,
            ])
        coding = pick(Coding.allCases)
        answerCoding = pick(Coding.allCases)
        fillers = Int(random.next() % 7)
        crowd = chance(70) ? 0 : pick([1, 3, 5, 12, 20])
        typesInbox = chance(50)
        typesOthers = chance(80) ? 0 : pick([2, 4, 5])
        isInboxInCc = form.action == "reply-all" && chance(60) || chance(8)
        isSanitized = chance(50)
        isToAll = form.action == "reply-all" || chance(15)

        var groups: [Place.Group] = [.header, .header, .text, .text, .text, .part]
        if shape == .markup || shape == .alternative { groups += [.markup, .markup] }
        if form.isCalendar { groups = [.calendar, .calendar, .calendar, .header, .text] }
        if form.isUnsubscribe { groups = [.unsubscribe, .unsubscribe, .unsubscribe, .header] }
        if chance(10) { groups += [.unsubscribe] }
        plants = []
        let wanted = 1 + Int(random.next() % 3)
        while plants.count < wanted {
            let group = plants.isEmpty ? groups[0] : pick(groups)
            let chosen =
                plants.isEmpty && !(form.isCalendar || form.isUnsubscribe) ? pick(groups) : group
            let place = pick(Place.allCases.filter { $0.group == chosen })
            let plant = Plant(
                place, guess: chance(60) ? 0 : Int(random.next() % UInt64(Guess.all.count)),
                spelling: chance(35) && place.takes(.plain) ? .plain : pick(Spelling.allCases),
                variant: random.next() % 1_000)
            if place.takes(plant.spelling), plant.isTelling,
                !plants.contains(where: { $0.place == place })
            {
                plants.append(plant)
            }
        }
    }

    /// A pair with only these.
    package init(
        seed: UInt64, form: Int, shape: Shape, plants: [Plant], isToAll: Bool = false,
        needsUnsubscribe: Bool = false
    ) {
        (self.seed, self.form, self.shape, self.plants) = (seed, form, shape, plants)
        (self.isToAll, self.needsUnsubscribe) = (isToAll, needsUnsubscribe)
        (coding, answerCoding, fillers, crowd, typesInbox, typesOthers) = (
            .plain, .plain, 2, 0, true, 0
        )
        (isInboxInCc, isSanitized) = (false, false)
    }

    // MARK: Making smaller

    /// The pairs with one element less.
    package var smaller: [PairSpec] {
        func with(_ change: (inout PairSpec) -> Void) -> PairSpec {
            var copy = self
            change(&copy)
            return copy
        }
        var pairs =
            plants.count > 1
            ? plants.indices.map { index in with { $0.plants.remove(at: index) } } : []
        if fillers > 0 { pairs.append(with { $0.fillers = 0 }) }
        if crowd > 0 { pairs.append(with { $0.crowd = 0 }) }
        if typesInbox { pairs.append(with { $0.typesInbox = false }) }
        if typesOthers > 0 { pairs.append(with { $0.typesOthers = 0 }) }
        if isInboxInCc { pairs.append(with { $0.isInboxInCc = false }) }
        if isToAll { pairs.append(with { $0.isToAll = false }) }
        if isSanitized { pairs.append(with { $0.isSanitized = false }) }
        if coding != .plain { pairs.append(with { $0.coding = .plain }) }
        if answerCoding != .plain { pairs.append(with { $0.answerCoding = .plain }) }
        if shape != .plain,
            shape != .invitation || !plants.contains(where: { $0.place.group == .calendar }),
            !plants.contains(where: { $0.place.group == .markup })
        {
            pairs.append(with { $0.shape = .plain })
        }
        for index in plants.indices
        where plants[index].spelling != .plain && plants[index].place.takes(.plain) {
            pairs.append(
                with { copy in
                    let old = copy.plants[index]
                    copy.plants[index] = Plant(
                        old.place, guess: old.guess, spelling: .plain, variant: old.variant)
                })
        }
        for index in plants.indices where plants[index].variant != 0 {
            pairs.append(
                with { copy in
                    let old = copy.plants[index]
                    copy.plants[index] = Plant(old.place, guess: old.guess, spelling: old.spelling)
                })
        }
        return pairs
    }
}
