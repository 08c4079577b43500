/** Who is signed in, for all pages; leads to the sign-in page and back. */
import { Button, Result } from 'antd'
import { createContext, lazy, Suspense, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from 'react'
import { forgetAll, messageOf, onSignedOut, readSession, signOut, type Session, type SignInWay } from '../kube'
import { useWords } from '../i18n'
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

type State = { session: Session } | { ways: SignInWay[]; expired: boolean } | { error: unknown } | undefined

export function SessionProvider({ children }: { children: ReactNode }) {
  const w = useWords(words)
  const [state, setState] = useState<State>()
  const signedIn = useRef(false)
  const load = useCallback(async (expired = false) => {
    try {
      const answer = await readSession()
      signedIn.current = !Array.isArray(answer)
      setState(Array.isArray(answer) ? { ways: answer, expired } : { session: answer })
    } catch (error) {
      setState({ error })
    }
  }, [])
  useEffect(() => {
    void load()
    onSignedOut(() => {
      // A wrong token is refused in the same way; who never was signed in has lost nothing.
      if (!signedIn.current) return
      forgetAll()
      void load(true)
    })
  }, [load])

  if (state === undefined) return <Waiting for={w('connecting')} height="60vh" />
  if ('error' in state) {
    return (
      <Result
        status="warning"
        title={w('serverGone', { message: messageOf(state.error) })}
        extra={<Button onClick={() => void load()}>{w('retry')}</Button>}
      />
    )
  }
  if ('ways' in state) {
    // The server's own pages (/console/apps/enter, which leads on to a notebook) are asked for again.
    const signedIn = (): void => (location.pathname.startsWith('/console/') ? location.reload() : void load())
    return (
      <Suspense fallback={<Waiting for={w('loadingPage')} height="60vh" />}>
        <SignIn ways={state.ways} expired={state.expired} onSignedIn={signedIn} />
      </Suspense>
    )
  }
  const leave = (): void => {
    void signOut().finally(() => {
      forgetAll()
      void load()
    })
  }
  return <Context.Provider value={{ session: state.session, leave }}>{children}</Context.Provider>
}
