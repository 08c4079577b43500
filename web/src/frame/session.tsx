/** Who is signed in, for all pages; leads to the sign-in page and back. */
import { Button, Result } from 'antd'
import { createContext, lazy, Suspense, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from 'react'
import { forgetAll, messageOf, onProofChanged, onSignedOut, readSession, SignedOut, signOut, type Session, type SignInWay, Unreachable } from '../kube'
import { useWords } from '../i18n'
import { arrive, broughtLink } from './arriving'
import { Waiting } from './Waiting'
import { words } from './words'

const SignIn = lazy(() => import('./SignIn'))

interface SessionValue {
  session: Session
  leave: () => void
}

const Context = createContext<SessionValue | undefined>(undefined)

export function useSession(): SessionValue {
  const value = useContext(Context)
  if (value === undefined) throw new Error('useSession outside SessionProvider')
  return value
}

type State = { session: Session } | { ways: SignInWay[]; expired: boolean; problem?: string | undefined } | { error: unknown } | undefined

export function SessionProvider({ children }: { children: ReactNode }) {
  const w = useWords(words)
  const [state, setState] = useState<State>()
  const [round, setRound] = useState(0)
  const signedIn = useRef(false)
  const load = useCallback(async (expired = false, problem?: string) => {
    try {
      const answer = await readSession()
      signedIn.current = !Array.isArray(answer)
      setState(Array.isArray(answer) ? { ways: answer, expired, problem } : { session: answer })
    } catch (error) {
      setState({ error })
    }
  }, [])
  const begin = useCallback(async () => {
    const byLink = broughtLink()
    try {
      const session = await arrive()
      if (session === undefined) return await load()
      signedIn.current = true
      setState({ session })
    } catch (error) {
      // Whoever is signed in already stays so: any page can lead here with a link that is no good.
      await load(false, byLink && error instanceof SignedOut ? w('oldLink') : w('signInFailed', { message: messageOf(error) }))
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once, in the language of the beginning
  }, [load])
  /** The pages go before the session is asked for: what they watch ends with it, and they begin anew with the next. */
  const again = useCallback(
    (expired = false) => {
      forgetAll()
      setState(undefined)
      setRound((before) => before + 1) // also where the answer comes before anything is drawn
      void load(expired)
    },
    [load],
  )
  useEffect(() => {
    void begin()
    onSignedOut(() => {
      // A wrong token is refused in the same way; who never was signed in has lost nothing.
      if (!signedIn.current) return
      signedIn.current = false // several requests are refused at once
      again(true)
    })
    onProofChanged(() => again())
  }, [begin, again])

  if (state === undefined) return <Waiting for={w('connecting')} height="60vh" />
  if ('error' in state) {
    return (
      <Result
        status="warning"
        title={state.error instanceof Unreachable ? w('serverSilent') : w('serverGone', { message: messageOf(state.error) })}
        extra={<Button onClick={() => void load()}>{w('retry')}</Button>}
      />
    )
  }
  if ('ways' in state) {
    return (
      <Suspense fallback={<Waiting for={w('loadingPage')} height="60vh" />}>
        <SignIn ways={state.ways} expired={state.expired} problem={state.problem} onSignedIn={() => void load()} />
      </Suspense>
    )
  }
  const leave = (): void => void signOut().finally(() => again())
  return <Context.Provider key={round} value={{ session: state.session, leave }}>{children}</Context.Provider>
}
