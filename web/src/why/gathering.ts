/** Questions that come within a moment become one. Pure, but for the timer. */

export const MOMENT_MS = 30
/** of one question: a page of pods stays far below what the server takes */
export const MOST = 200

interface Waiting<Question, Answer> {
  question: Question
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

/** `ask` answers all questions, in their order. */
export function gathered<Question, Answer>(ask: (questions: readonly Question[]) => Promise<readonly Answer[]>): (question: Question) => Promise<Answer> {
  let waiting: Waiting<Question, Answer>[] = []
  const send = (): void => {
    const now = waiting
    waiting = []
    for (let from = 0; from < now.length; from += MOST) {
      const some = now.slice(from, from + MOST)
      ask(some.map((each) => each.question))
        .then((answers) => some.forEach((each, index) => each.resolve(answers[index]!)))
        .catch((error: unknown) => some.forEach((each) => each.reject(error)))
    }
  }
  return (question) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setTimeout(send, MOMENT_MS)
      waiting.push({ question, resolve, reject })
    })
}
